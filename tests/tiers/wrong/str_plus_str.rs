// expect: E0369
"a" + "b"
