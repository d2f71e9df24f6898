// expect: E0502
#[derive(Debug)]
struct List { items: Vec<i32> }
let mut l = List { items: vec![] };
let a = &mut l.items;
println!("{:?}", l);
a.push(1);
