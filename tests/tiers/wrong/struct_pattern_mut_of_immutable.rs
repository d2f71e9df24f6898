// expect: E0596
struct List { items: Vec<i32> }
let l = List { items: vec![] };
let List { items } = &mut l;
