// expect: E0507
struct Layer { w: Array }
let v = vec![Layer { w: ones([1]) }];
let s = v[0].w + 1.0;
