// expect: E0425
count = 5;
