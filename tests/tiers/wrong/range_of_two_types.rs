// expect: E0308
for i in 0..2.5 {
    println!("{i}");
}
