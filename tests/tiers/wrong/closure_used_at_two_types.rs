// expect: E0308
let id = |x| x;
let a = id(1);
let b = id("text");
