// expect: E0411
let p = Self { x: 1.0 };
