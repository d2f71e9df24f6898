// expect: E0384
let x;
for i in 0..3 {
    x = i;
}
