// expect: E0382
let x = ones([2]);
let n = 3;
match n {
    0 => println!("{}", x.len()),
    _ => drop(x),
}
x.len()
