// expect: E0530
struct Pair(i32, i32);
let Pair = 1;
