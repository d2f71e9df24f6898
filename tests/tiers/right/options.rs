let some = Some(3);
let none: Option<i32> = None;
(some, none, some.is_some(), none.is_none())
// %%
(some.unwrap(), none.unwrap_or(9), some.map(|x| x * 2), none.map(|x| x * 2))
// %%
match some {
    Some(x) if x > 5 => "large",
    Some(_) => "small",
    None => "nothing",
}
// %%
if let Some(x) = some {
    println!("{x}");
}
if let None = none {
    println!("none");
}
// %%
let Some(inner) = some else { panic!("there is one") };
inner
// %%
let nested = Some(Some(1));
match nested {
    Some(Some(n)) => n,
    Some(None) => -1,
    None => -2,
}
// %%
fn half(n: i32) -> Option<i32> {
    if n % 2 == 0 { Some(n / 2) } else { None }
}
(half(8), half(7), half(8).unwrap_or_else(|| 0), half(12).and_then(half))
// %%
let mut slot = Some(5);
let taken = slot.take();
(taken, slot, slot.replace(6), slot)
// %%
Some(1) < Some(2) && None < Some(0) && Some(3) == Some(3)
// %%
fn quarter(n: i32) -> Option<i32> {
    let h = half(n)?;
    half(h)
}
(quarter(8), quarter(6), quarter(5))
// %%
let word = Some(String::from("hello"));
if let Some(w) = &word {
    println!("{}", w.len());
}
word
