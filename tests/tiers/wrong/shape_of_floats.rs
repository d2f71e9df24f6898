// expect: E0277
zeros([2.0, 3.0])
