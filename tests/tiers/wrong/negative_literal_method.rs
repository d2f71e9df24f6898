// expect: E0689
(-2).pow(2)
