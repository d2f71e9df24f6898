// expect: E0116
impl Array { fn f(&self) {} }
