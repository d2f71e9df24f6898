// expect: E0121
struct Named { name: _ }
