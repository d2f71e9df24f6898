let x = 1;
let r = &x;
let x = x + 10;
println!("{r} {x}");
// %%
for x in 0..2 {
    let x = x * 100;
    print!("{x} ");
}
println!("{x}");
// %%
let x = match x {
    x if x > 100 => "large",
    x => {
        let x = x * 2;
        if x > 20 { "medium" } else { "small" }
    }
};
x
// %%
fn f(x: i32) -> i32 {
    let x = x + 1;
    {
        let x = x * 2;
        println!("{x}");
    }
    x
}
f(4)
// %%
let f = f(1);
f
// %%
let g = |x: i32| {
    let x = x as f64 / 2.0;
    x
};
g(3)
// %%
let v = vec![1, 2];
let v: Vec<f64> = v.iter().map(|x| *x as f64).collect();
let v = v.len();
v
