// expect: E0023
struct Pair(i32, i32);
let Pair(a) = Pair(1, 2);
