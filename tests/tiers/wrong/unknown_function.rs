// expect: E0425
zeroes([2, 3])
