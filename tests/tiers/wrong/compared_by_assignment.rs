// expect: E0308
let n = 3;
if n = 3 {
    println!("three");
}
