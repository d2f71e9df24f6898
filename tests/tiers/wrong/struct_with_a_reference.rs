// expect: E0106
struct Named { name: &str }
