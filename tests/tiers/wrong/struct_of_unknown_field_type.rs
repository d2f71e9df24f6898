// expect: E0425
struct Point { x: Flot }
