// expect: E0277
ones([2]).dot("a")
