// expect: E0277
"1" == 1
