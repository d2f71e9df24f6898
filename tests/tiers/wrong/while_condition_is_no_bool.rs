// expect: E0308
while 1 {
    break;
}
