// expect: E0499
struct List { items: Vec<i32> }
let mut l = List { items: vec![] };
let a = &mut l.items;
let b = &mut l.items;
a.push(1);
