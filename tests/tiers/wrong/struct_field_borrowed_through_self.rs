// expect: E0596
struct List { items: Vec<i32> }
impl List { fn add(&self) { self.items.push(1); } }
