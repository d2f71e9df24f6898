// expect: E0277
for (a, b) in [1, 2].iter().zip(5) {
    println!("{a}{b}");
}
