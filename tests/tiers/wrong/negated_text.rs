// expect: E0600
-"a"
