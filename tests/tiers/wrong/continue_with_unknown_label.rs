// expect: E0426
loop {
    continue 'a;
}
