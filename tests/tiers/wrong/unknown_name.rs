// expect: E0425
let total = 1;
totl + 1
