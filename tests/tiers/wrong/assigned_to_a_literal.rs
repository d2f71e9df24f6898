// expect: E0070
1 = 2;
