// expect: E0499
struct List { items: Vec<i32> }
impl List { fn all(&mut self) -> &mut Vec<i32> { &mut self.items } }
let mut l = List { items: vec![1] };
let a = l.all();
let b = l.all();
a.push(1);
