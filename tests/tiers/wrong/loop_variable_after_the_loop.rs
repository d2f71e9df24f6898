// expect: E0425
for i in 0..3 {
    println!("{i}");
}
i
