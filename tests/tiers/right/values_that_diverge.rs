fn sign(n: i32) -> i32 {
    let s: i32 = if n > 0 {
        1
    } else if n < 0 {
        -1
    } else {
        return 0;
    };
    s * 10
}
(sign(5), sign(-5), sign(0))
// %%
let n = 3;
let x: i32 = if n == 3 { 7 } else { panic!("not three") };
x
// %%
let y = match n {
    3 => "three",
    _ => unreachable!(),
};
y
// %%
let mut out = vec![];
for i in 0..6 {
    let value = if i % 2 == 0 { i } else { continue };
    out.push(value);
}
out
// %%
let z = loop {
    break;
};
z
// %%
let w = loop {
    let Some(k) = Some(4) else { continue };
    break k + 1;
};
w
// %%
fn forever(n: i32) -> i32 {
    loop {
        if n > 0 {
            return n;
        }
    }
}
forever(2)
// %%
let mut n = 0;
let u = n = 5;
println!("{u:?} {n}");
