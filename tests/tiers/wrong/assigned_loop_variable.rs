// expect: E0384
for i in 0..3 {
    i += 1;
}
