// expect: E0282
let v = Vec::new();
