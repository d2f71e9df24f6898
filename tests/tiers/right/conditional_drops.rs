let mib = 1024 * 1024;
let one = {
    let x = ones([mib]);
    memory_stats().bytes_in_use
};
fn now(one: u64) -> u64 {
    memory_stats().bytes_in_use / one
}
for i in 0..3 {
    let x = ones([mib]);
    if i == 1 {
        drop(x);
        print!("dropped {} ", now(one));
        continue;
    }
    print!("kept {} ", now(one));
    if i == 2 {
        break;
    }
}
println!("{}", now(one));
// %%
fn maybe(give: bool, one: u64) -> Option<Array> {
    let x = ones([1024 * 1024]);
    if give { Some(x) } else { None }
}
let kept = maybe(true, one);
println!("{}", now(one));
let none = maybe(false, one);
println!("{}", now(one));
// %%
let y;
{
    let x = ones([mib]);
    y = x;
    let z = ones([mib]);
}
println!("{}", now(one));
// %%
drop(y);
match kept {
    Some(x) if x.len() == 0 => println!("empty"),
    Some(x) => println!("{}", now(one)),
    None => println!("none"),
}
println!("{}", now(one));
// %%
let t = (ones([mib]), ones([mib]));
{
    let (a, _) = t;
    println!("{}", now(one));
}
println!("{}", now(one));
// %%
let v: Vec<Array> = (0..4).map(|_| ones([mib])).collect();
println!("{}", now(one));
for (i, x) in v.into_iter().enumerate() {
    if i == 2 {
        println!("{}", now(one));
        break;
    }
}
println!("{}", now(one));
// %%
let w = ones([mib]);
let f = move || w.len();
println!("{}", now(one));
f();
drop(f);
println!("{}", now(one));
// %%
let w = ones([mib]);
let g = move || w;
println!("{}", now(one));
g().len();
println!("{}", now(one));
// %%
let a = ones([mib]);
let n = 'out: {
    let b = ones([mib]);
    if b.len() > 1 {
        break 'out now(one);
    }
    0
};
println!("{n} {}", now(one));
// %%
fn deep(n: i32, one: u64) -> u64 {
    let x = ones([1024 * 1024]);
    if n == 0 { now(one) } else { deep(n - 1, one) }
}
println!("{} {}", deep(3, one), now(one));
