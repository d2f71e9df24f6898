#[derive(Debug, Clone)]
struct Two { a: String, b: String, n: i32 }
fn two() -> Two { Two { a: "a".into(), b: "b".into(), n: 1 } }
let t = two();
let a = t.a;
println!("{} {} {}", a, t.b, t.n);
// %%
let mut u = two();
drop(u.a);
u.a = "again".into();
println!("{:?}", u);
// %%
let base = two();
let made = Two { a: "new".into(), ..base };
println!("{:?} {} {}", made, base.a, base.n);
// %%
let base = two();
let made = Two { n: 3, ..base.clone() };
println!("{:?} {:?}", made, base);
// %%
let t = two();
let Two { a, ref b, n } = t;
println!("{a} {b} {n} {}", t.b);
// %%
let t = two();
match t {
    Two { n: 0, .. } => println!("none"),
    Two { ref a, n, .. } if n > 5 => println!("{a}"),
    Two { ref b, .. } => println!("{b}"),
}
println!("{:?}", t);
// %%
let mut t = two();
let Two { a: first, b: second, .. } = &mut t;
std::mem::swap(first, second);
println!("{:?}", t);
// %%
fn join(Two { a, b, .. }: Two) -> String { a + &b }
let f = |Two { n, .. }: &Two| n + 1;
println!("{}", f(&t));
println!("{}", join(t));
// %%
let mut t = two();
let f = t.a.clone();
let Two { a, .. } = t;
t = two();
println!("{} {} {:?}", f, a, t);
// %%
struct Deep { inner: Two, other: Vec<String> }
let d = Deep { inner: two(), other: vec!["o".into()] };
let s = d.inner.a;
let o = d.other;
println!("{} {} {} {:?}", s, d.inner.b, d.inner.n, o);
// %%
let mut p = (two(), 5);
let moved = p.0;
p.0 = Two { a: "x".into(), ..moved };
println!("{:?}", p);
// %%
let (x, y);
Two { a: x, b: y, .. } = two();
println!("{x} {y}");
