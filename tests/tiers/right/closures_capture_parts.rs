let t = (vec![1, 2], String::from("s"));
let len = || t.0.len();
let moved = t.1;
println!("{} {moved}", len());
// %%
let mut state = (0, vec![1]);
let mut bump = || state.0 += 1;
state.1.push(2);
bump();
bump();
state
// %%
let x = ones([2]);
let apply = |y: &Array| y + &x;
println!("{} {}", apply(&x), x.len());
// %%
let mut log = Vec::new();
let mut note = |n: i32| {
    log.push(n);
    log.len()
};
note(1);
let n = note(2);
log.push(3);
(n, log)
// %%
fn twice(f: impl Fn(f64) -> f64, x: f64) -> f64 {
    f(f(x))
}
let k = 3.0;
(twice(|x| x * k, 2.0), twice(f64::sqrt, 16.0))
// %%
fn once(f: impl FnOnce() -> Array) -> f64 {
    f().sum().item()
}
let y = ones([4]);
once(move || y * 2.0)
// %%
fn compose(f: impl Fn(i32) -> i32, g: impl Fn(i32) -> i32) -> impl Fn(i32) -> i32 {
    move |x| g(f(x))
}
let h = compose(|x| x + 1, |x| x * 10);
(h(1), h(2))
// %%
let fs: Vec<Box<dyn Fn(i32) -> i32>> = vec![Box::new(|x| x + 1), Box::new(move |x| x * h(0))];
fs.iter().map(|f| f(5)).collect::<Vec<_>>()
// %%
let mut counter = {
    let mut n = 10;
    move || {
        n -= 1;
        n
    }
};
(counter(), counter(), counter())
// %%
fn each(values: &[i32], mut f: impl FnMut(usize, i32)) {
    for (i, v) in values.iter().enumerate() {
        f(i, *v);
    }
}
let mut sum = 0;
each(&[5, 6, 7], |i, v| sum += i as i32 * v);
sum
// %%
let words = ["one", "two"];
let find = |w: &str| words.iter().position(|x| *x == w);
(find("two"), find("three"))
