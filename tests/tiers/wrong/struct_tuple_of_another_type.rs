// expect: E0308
struct Pair(i32, i32);
let p = Pair(1, 2.0);
