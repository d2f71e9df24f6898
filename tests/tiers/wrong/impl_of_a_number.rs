// expect: E0390
impl i32 { fn f(&self) {} }
