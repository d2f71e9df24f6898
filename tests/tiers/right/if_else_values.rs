let n = 7;
let kind = if n % 2 == 0 { "even" } else if n > 5 { "odd and large" } else { "odd" };
kind
// %%
if n > 3 {
    println!("yes");
}
// %%
10 + if n > 3 { 1 } else { 2 }
// %%
let x = if n == 7 { n as f64 } else { return_nothing() };
fn return_nothing() -> f64 {
    -1.0
}
x
// %%
let y = {
    let t = n * 2;
    t + 1
};
y
// %%
let z = if let Some(k) = Some(3) { k } else { 0 };
z
// %%
if n > 3 && n < 10 || false {
    let s = "in the middle";
    println!("{s}");
} else {
    println!("outside");
}
