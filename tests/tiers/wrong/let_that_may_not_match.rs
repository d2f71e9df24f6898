// expect: E0005
let Some(n) = Some(1);
