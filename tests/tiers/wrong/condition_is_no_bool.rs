// expect: E0308
let n = 1;
if n {
    println!("yes");
}
