// expect: E0070
let a = 1;
a + 1 = 2;
