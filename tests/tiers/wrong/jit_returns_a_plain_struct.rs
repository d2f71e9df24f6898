// expect: E0277
struct Layer { w: Array }
let f = jit(|[x]| Layer { w: x * 2.0 });
