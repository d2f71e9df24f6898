// expect: E0618
struct Unit;
let u = Unit();
