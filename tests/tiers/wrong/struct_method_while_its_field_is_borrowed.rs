// expect: E0502
struct List { items: Vec<i32> }
impl List { fn add(&mut self) { self.items.push(1); } }
let mut l = List { items: vec![1] };
let first = &l.items[0];
l.add();
println!("{first}");
