// expect: E0268
if true {
    continue;
}
