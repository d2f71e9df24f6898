// expect: E0425
impl Pint { fn f() {} }
