// expect: E0515
struct Names { all: Vec<String> }
impl Names { fn pick(&self) -> &String { let s = String::new(); &s } }
