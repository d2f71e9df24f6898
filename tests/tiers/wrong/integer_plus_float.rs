// expect: E0277
1 + 2.5
