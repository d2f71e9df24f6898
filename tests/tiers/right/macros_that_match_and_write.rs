let o = Some(3);
println!("{} {}", matches!(o, Some(n) if n > 2), matches!(o, None | Some(0)));
println!("{}", matches!('c', 'a'..='d' | 'x'));
println!("{:?}", vec![1, 5, 9].into_iter().filter(|n| matches!(n, 4..)).collect::<Vec<i32>>());
struct P { x: i32, y: i32 }
let p = P { x: 1, y: 2 };
println!("{}", matches!(p, P { x: 1, .. }));
println!("{}", matches!(&p, P { y, .. } if *y == 3));
// %%
let n = dbg!(2 + 3) * 2;
println!("{n}");
let s = dbg!(String::from("x"));
let (a, b) = dbg!(n, &s);
println!("{a} {b}");
dbg!();
let l = dbg!(&s).len();
println!("{l}");
// %%
use std::fmt::Write;
let mut out = String::new();
write!(out, "{}-{:>4}", 1, "a").unwrap();
writeln!(out).unwrap();
writeln!(out, "{n:03}").unwrap();
write!(&mut out, "{}", out_len()).unwrap();
fn out_len() -> usize { 7 }
println!("{out}");
// %%
fn render(out: &mut String, n: i32) {
    write!(out, "<{n}>").unwrap();
}
let mut text = String::from("t");
for i in 0..3 {
    let _ = write!(text, "{i},");
}
println!("{text}");
render(&mut text, 5);
println!("{text}");
let kept = write!(text, "x");
println!("{:?} {}", kept, kept.is_ok());
