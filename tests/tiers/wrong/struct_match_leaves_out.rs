// expect: E0004
struct Flag { on: bool, n: u8 }
let f = Flag { on: true, n: 1 };
match f { Flag { on: true, .. } => 1, Flag { n: 0..=9, .. } => 2 }
