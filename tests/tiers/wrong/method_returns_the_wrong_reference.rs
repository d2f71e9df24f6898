// expect: none
struct Names { all: Vec<String> }
impl Names { fn pick(&self, other: &String) -> &String { other } }
