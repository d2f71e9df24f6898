// expect: E0382
fn eaten(x: Array) -> bool {
    x.len() > 2
}
let x = ones([2]);
if eaten(x) && x.len() > 1 {
    println!("yes");
}
