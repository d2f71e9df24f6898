// expect: E0067
1 += 2;
