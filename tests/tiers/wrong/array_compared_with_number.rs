// expect: E0369
ones([2]) == 1.0
