// expect: E0267
for i in 0..3 {
    let f = || break;
}
