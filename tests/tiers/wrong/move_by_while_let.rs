// expect: E0382
let o = Some(String::from("a"));
while let Some(s) = o {
    println!("{s}");
}
