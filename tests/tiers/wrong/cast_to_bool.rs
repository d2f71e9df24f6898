// expect: E0054
5 as bool
