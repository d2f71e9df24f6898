// expect: E0507
struct Two { a: String }
impl Two { fn eat(self) {} }
fn f(t: &Two) { t.eat(); }
