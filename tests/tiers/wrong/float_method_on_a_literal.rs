// expect: E0689
2.0.sqrt()
