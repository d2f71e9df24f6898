// expect: E0716
let r: &Array = {
    &ones([2]).tanh()
};
let s: &Vec<i32>;
s = &vec![1];
println!("{}", s.len());
