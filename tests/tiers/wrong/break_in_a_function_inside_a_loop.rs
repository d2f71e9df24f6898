// expect: E0268
loop {
    fn f() {
        break;
    }
    break;
}
