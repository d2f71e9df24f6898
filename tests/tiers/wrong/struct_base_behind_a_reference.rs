// expect: E0507
struct Two { a: String, b: String }
fn f(t: &Two) -> Two { Two { a: String::new(), ..*t } }
