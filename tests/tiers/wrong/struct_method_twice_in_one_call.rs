// expect: E0499
struct List { items: Vec<i32> }
impl List { fn all(&mut self) -> &mut Vec<i32> { &mut self.items }
fn join(&mut self, other: &mut Vec<i32>) {} }
let mut l = List { items: vec![1] };
l.join(l.all());
