// expect: E0004
let n = 3u8;
match n {
    0..=100 => 1,
    102..=255 => 2,
}
