// expect: E0277
ones([2]) + "a"
