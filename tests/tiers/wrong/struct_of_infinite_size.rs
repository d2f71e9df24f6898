// expect: E0072
struct Node { value: i32, next: Option<Node> }
