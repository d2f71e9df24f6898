// expect: E0382
let x = ones([2]);
for _ in 0..2 {
    let y = tanh(x);
}
