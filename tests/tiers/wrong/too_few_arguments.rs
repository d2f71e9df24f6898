// expect: E0061
zeros()
