// expect: E0571
let x = for i in 0..3 {
    break i;
};
