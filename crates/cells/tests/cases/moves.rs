let s = String::from("héllo");
let t = s;
println!("{s}");
// %%
let s = String::from("x");
drop(s);
// %%
s.len()
// %%
let a = String::new();
for _ in 0..2 { drop(a); }
// %%
let a = String::new();
if 1 < 2 { drop(a); }
a
// %%
let x;
if 1 < 2 { x = 1; }
x
// %%
let x = 5;
x = 6;
// %%
let v = vec![1];
v.push(2);
// %%
let v = vec![String::new()];
let s = v[0];
// %%
let t = (String::new(), 1);
let u = t.0;
t
// %%
let s = String::new();
let f = move || s.len();
s
