// expect: E0433
let p = Self::new();
