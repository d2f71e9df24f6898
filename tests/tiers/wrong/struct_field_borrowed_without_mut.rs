// expect: E0596
struct List { items: Vec<i32> }
let l = List { items: vec![] };
l.items.push(1);
