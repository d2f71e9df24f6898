let o = Some(String::from("abc"));
match &o {
    Some(s) if s.len() > 2 => println!("long {s}"),
    Some(s) => println!("short {s}"),
    None => println!("none"),
}
// %%
if let Some(ref s) = o {
    println!("{}", s.len());
}
o.is_some()
// %%
let pairs = vec![(1, 'a'), (2, 'b')];
let sum: i32 = pairs.iter().map(|&(n, _)| n).sum();
let text: String = pairs.iter().map(|(_, c)| *c).collect();
(sum, text)
// %%
for &(n, c) in &pairs {
    print!("{n}{c} ");
}
for (i, (n, c)) in pairs.iter().enumerate() {
    print!("{i}{n}{c} ");
}
println!();
// %%
let v = vec![3, 4, 5];
if let Some(&x) = v.first() {
    println!("{x}");
}
if let [a, b, ..] = v[..] {
    println!("{a} {b}");
}
if let [.., y, _] = v.as_slice() {
    println!("{y}");
}
// %%
let mut slot = Some(5);
if let Some(x) = &mut slot {
    *x += 1;
}
if let Some(x) = slot.as_mut() {
    *x *= 2;
}
slot
// %%
let mut t = (1, vec![1]);
let (n, list) = &mut t;
*n += 1;
list.push(2);
t
// %%
match (&v, v.len()) {
    (list, 3) => println!("three {list:?}"),
    _ => println!("other"),
}
// %%
let nested = Some(&5);
match nested {
    Some(&5) => "five",
    Some(_) => "other",
    None => "none",
}
// %%
let n @ 1..=9 = 5 else { panic!("no digit") };
n
// %%
match v.as_slice() {
    [first @ .., last] => println!("{first:?} {last}"),
    [] => println!("empty"),
}
