// expect: E0382
let x = ones([2]);
let n = 3;
if n > 2 {
    drop(x);
}
x.len()
