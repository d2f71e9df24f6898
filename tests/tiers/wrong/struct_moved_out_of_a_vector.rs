// expect: E0507
struct Two { a: String, b: String }
let v = vec![Two { a: String::new(), b: String::new() }];
let s = v[0].a;
