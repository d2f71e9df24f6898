// expect: E0277
#[derive(Default)]
struct Layer { w: Array }
