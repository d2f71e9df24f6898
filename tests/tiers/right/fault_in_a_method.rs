// faults
struct Stack { items: Vec<i32> }
impl Stack {
    fn top(&self) -> i32 { self.items[self.items.len() - 1] }
}
let s = Stack { items: vec![1] };
println!("{}", s.top());
let e = Stack { items: vec![] };
e.top()
