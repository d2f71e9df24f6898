// expect: E0507
struct Two { a: String, b: String }
impl Two { fn f(&self) -> String { self.a } }
