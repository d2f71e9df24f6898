// expect: E0204
#[derive(Clone, Copy)]
struct Named { name: String }
