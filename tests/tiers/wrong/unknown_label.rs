// expect: E0426
'outer: for i in 0..3 {
    break 'inner;
}
