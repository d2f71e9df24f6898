// expect: E0369
#[derive(PartialEq)]
struct Layer { w: Array }
