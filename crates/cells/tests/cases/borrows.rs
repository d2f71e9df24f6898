let mut v = vec![1, 2];
let r = &v;
v.push(3);
r.len()
// %%
let mut v = vec![1, 2];
let r = &v;
let n = r.len();
v.push(n as i32);
v
// %%
let x = String::from("a");
let r = &x;
println!("{}", r.len());
// %%
drop(x);
// %%
r.len()
// %%
let r; { let inner = 5; r = &inner; } println!("{r}");
// %%
let mut v = vec![1, 2, 3];
for x in &v { v.push(*x); }
// %%
let mut n = 1;
let a = &mut n; let b = &mut n;
*a += 1; *b += 1;
// %%
fn longest(a: &str, b: &str) -> &str { a }
// %%
fn dangling<'a>() -> &'a String { let s = String::new(); &s }
// %%
let mut it = vec![1, 2, 3].into_iter();
let first = it.next();
(first, it.collect::<Vec<_>>())
