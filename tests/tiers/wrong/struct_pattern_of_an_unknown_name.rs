// expect: E0422
let Pint { x } = 1;
