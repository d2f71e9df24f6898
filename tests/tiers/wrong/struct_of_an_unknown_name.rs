// expect: E0422
let p = Pint { x: 1.0 };
