// expect: E0061
struct Pair(i32, i32);
let p = Pair(1);
