let x = 5;
let x = x * 2;
{
    let x = "inner";
    println!("{x}");
}
println!("{x}");
// %%
let x = x as f64 / 4.0;
x
// %%
let x = if x > 2.0 { "large" } else { "small" };
x
// %%
let a;
let b;
if x == "large" {
    a = 1;
    b = 2.5;
} else {
    a = 3;
    b = 4.5;
}
(a, b)
// %%
let mut n = 1;
n = n + 1;
n += 40;
n
// %%
let _unused = n;
let _ = n * 2;
n
