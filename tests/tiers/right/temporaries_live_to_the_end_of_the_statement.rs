let mib = 1024 * 1024;
let x = ones([mib]);
let one = memory_stats().bytes_in_use;
fn now(one: u64) -> u64 {
    memory_stats().bytes_in_use / one
}
let extended = &x.tanh();
println!("{} {}", extended.len() > 0, now(one));
// %%
{
    let r = &ones([mib]);
    let s = &r.exp();
    println!("{}", now(one));
}
println!("{}", now(one));
// %%
_ = ones([mib]);
println!("{}", now(one));
let _ = ones([mib]);
println!("{}", now(one));
let _name = ones([mib]);
println!("{}", now(one));
// %%
println!("{} {}", x.exp().len() > 0, now(one));
println!("{}", now(one));
// %%
let n = x.exp().len() + now(one) as usize - x.tanh().len();
println!("{n} {}", now(one));
// %%
if let Some(k) = Some(x.exp().len()) {
    println!("{} {}", k > 0, now(one));
} else {
    println!("never");
}
// %%
if let Some(k) = Some(x.exp()) {
    println!("inside {}", now(one));
}
println!("{}", now(one));
// %%
match x.exp() {
    y if y.len() == 0 => println!("empty"),
    y => println!("{}", now(one)),
}
println!("{}", now(one));
// %%
let ok = x.tanh().len() > 0 && now(one) > 0 && x.exp().len() > 0;
println!("{}", now(one));
// %%
let t = (x.tanh().len(), now(one), x.exp().len(), now(one));
println!("{} {} {}", t.1, t.3, now(one));
// %%
let block = {
    let inner = x.tanh();
    inner.exp().len() + now(one) as usize
};
println!("{} {}", block - mib as usize, now(one));
// %%
fn two(a: &Array, b: &Array, one: u64) -> u64 {
    now(one)
}
two(&x.tanh(), &x.exp(), one)
// %%
fn eat(a: Array, one: u64) -> u64 {
    let b = &a + 1.0;
    drop(a);
    now(one)
}
eat(x.tanh(), one)
// %%
now(one)
