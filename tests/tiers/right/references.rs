let x = 5;
let r = &x;
*r + 1
// %%
let mut y = 10;
{
    let m = &mut y;
    *m += 5;
    *m *= 2;
}
y
// %%
let v = vec![1, 2, 3];
let first = &v[0];
let slice = &v[1..];
println!("{first} {slice:?} {}", v.len());
// %%
fn bump(n: &mut i32) -> i32 {
    *n += 1;
    *n
}
let mut n = 0;
let a = bump(&mut n);
let b = bump(&mut n);
(a, b, n)
// %%
let mut list = vec![1, 2, 3];
let last = list.last_mut();
if let Some(z) = last {
    *z = 30;
}
let front = &mut list[0];
*front = 10;
list
// %%
let t = (1, String::from("s"));
let (n, s) = &t;
println!("{n} {s} {}", t.1.len());
// %%
let rr = &&7;
**rr + *&1
// %%
let (mut p, mut q) = (1, 2);
std::mem::swap(&mut p, &mut q);
let old = std::mem::replace(&mut p, 100);
(p, q, old)
