fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
gcd(48, 36)
// %%
fn find(values: &[i32], wanted: i32) -> i32 {
    for i in 0..values.len() {
        if values[i] == wanted {
            return i as i32;
        }
    }
    -1
}
(find(&[5, 6, 7], 7), find(&[5], 7))
// %%
fn fib(n: u32) -> u64 {
    match n {
        0 | 1 => n as u64,
        _ => fib(n - 1) + fib(n - 2),
    }
}
fib(15)
// %%
fn pair(a: i32) -> (i32, f64) {
    (a, a as f64 / 2.0)
}
let (whole, half) = pair(5);
(whole, half)
// %%
fn swap(a: &mut i32, b: &mut i32) {
    let t = *a;
    *a = *b;
    *b = t;
}
let mut a = 1;
let mut b = 2;
swap(&mut a, &mut b);
(a, b)
// %%
fn even(n: u32) -> bool {
    n == 0 || odd(n - 1)
}
fn odd(n: u32) -> bool {
    n != 0 && even(n - 1)
}
(even(10), odd(7), even(7))
// %%
fn nothing() {}
fn shout(text: &str) {
    println!("{}!", text.to_uppercase());
}
nothing();
shout("here");
// %%
fn outer(x: i32) -> i32 {
    fn inner(y: i32) -> i32 {
        y * 2
    }
    inner(x) + inner(x + 1)
}
outer(10)
// %%
fn longer<'a>(a: &'a str, b: &'a str) -> &'a str {
    if a.len() >= b.len() { a } else { b }
}
longer("short", "longest")
// %%
fn mean(values: &[f64]) -> f64 {
    let mut sum = 0.0;
    for value in values {
        sum += value;
    }
    sum / values.len() as f64
}
let data = vec![1.0, 2.0, 4.5];
mean(&data) + mean(&[1.0]) + mean(&data[1..])
// %%
const LIMIT: i32 = 3;
fn below(n: i32) -> bool {
    n < LIMIT
}
(below(2), below(3))
