// expect: E0005
for Some(x) in [Some(1), None] {
    println!("{x}");
}
