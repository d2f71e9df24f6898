// expect: E0382
struct Two { a: String, b: String }
impl Two { fn len(&self) -> usize { self.a.len() } }
let t = Two { a: String::new(), b: String::new() };
drop(t.b);
t.len()
