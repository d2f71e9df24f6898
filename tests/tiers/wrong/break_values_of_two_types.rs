// expect: E0308
let x = loop {
    if true {
        break 1;
    }
    break "two";
};
