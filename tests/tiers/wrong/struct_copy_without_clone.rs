// expect: E0277
#[derive(Copy)]
struct Named { n: i32 }
