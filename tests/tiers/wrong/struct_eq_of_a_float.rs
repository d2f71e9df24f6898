// expect: E0277
#[derive(PartialEq, Eq)]
struct Named { n: f64 }
