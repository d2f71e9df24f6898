// expect: E0531
let Pint(x) = 1;
