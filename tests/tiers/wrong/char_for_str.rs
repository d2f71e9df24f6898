// expect: E0308
let s: &str = 'a';
