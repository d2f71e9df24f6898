// expect: E0609
struct Pair(i32, i32);
let p = Pair(1, 2);
p.2
