// expect: E0422
{ struct Local { x: i32 } }
let l = Local { x: 1 };
