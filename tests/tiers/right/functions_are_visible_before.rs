let y = later(3);
fn later(x: i32) -> i32 {
    x * x
}
y
// %%
fn first(n: i32) -> i32 {
    if n > 0 { second(n - 1) } else { 100 }
}
fn second(n: i32) -> i32 {
    first(n) + 1
}
first(3)
