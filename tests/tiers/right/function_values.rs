fn double(x: i32) -> i32 {
    x * 2
}
let f = double;
let g: fn(i32) -> i32 = double;
(f(1), g(2))
// %%
[1, 2, 3].iter().map(|x| double(*x)).collect::<Vec<_>>()
// %%
(1..4).map(double).collect::<Vec<i32>>()
// %%
fn choose(which: bool) -> fn(i32) -> i32 {
    fn triple(x: i32) -> i32 {
        x * 3
    }
    if which { double } else { triple }
}
(choose(true)(5), choose(false)(5))
// %%
fn make(k: i32) -> impl Fn(i32) -> i32 {
    move |x| x * k
}
let by7 = make(7);
by7(6)
// %%
let table: [fn(f64) -> f64; 2] = [f64::sqrt, f64::abs];
table[0](9.0) + table[1](-1.0)
