// expect: E0382
struct Two { a: String, b: String }
let t = Two { a: String::new(), b: String::new() };
let Two { a, .. } = t;
let u = t;
