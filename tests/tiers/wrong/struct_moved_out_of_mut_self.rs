// expect: E0507
struct Two { a: String, b: String }
impl Two { fn f(&mut self) -> String { self.a } }
