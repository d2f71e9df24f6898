// expect: E0382
let v = vec![1, 2];
let mut n = 0;
while n < 3 {
    let w = v;
    n += w.len();
}
