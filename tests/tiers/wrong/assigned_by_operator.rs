// expect: E0384
let n = 1;
for i in 0..3 {
    n += i;
}
