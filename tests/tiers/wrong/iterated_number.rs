// expect: E0277
for i in 5 {
    println!("{i}");
}
