// expect: E0005
struct Point { x: f64, y: f64 }
struct Flag { on: bool }
let Flag { on: true } = (Flag { on: true });
