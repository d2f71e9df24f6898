// expect: E0382
let x = ones([2]);
let f = move || drop(x);
for _ in 0..2 {
    f();
}
