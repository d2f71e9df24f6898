// expect: E0425
match 5 {
    n => println!("{n}"),
}
n
