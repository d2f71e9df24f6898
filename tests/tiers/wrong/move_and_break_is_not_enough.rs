// expect: E0382
let x = ones([2]);
let mut n = 0;
while n < 2 {
    n += 1;
    if n == 5 {
        continue;
    }
    drop(x);
}
