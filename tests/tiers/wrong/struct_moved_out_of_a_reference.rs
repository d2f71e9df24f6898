// expect: E0507
struct Two { a: String, b: String }
fn f(t: &Two) -> String { t.a }
