// expect: E0596
struct List { items: Vec<i32> }
impl List { fn add(&mut self) { self.items.push(1); }
fn twice(&self) { self.add(); } }
