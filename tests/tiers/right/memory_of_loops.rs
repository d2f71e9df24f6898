let mib = 1024 * 1024;
let mut x = ones([mib]);
let one = memory_stats().bytes_in_use;
fn now(one: u64) -> u64 {
    memory_stats().bytes_in_use / one
}
for _ in 0..3 {
    x = &x * 0.5;
    let y = x.tanh();
    print!("{} ", now(one));
}
println!("{}", now(one));
// %%
for _ in 0..3 {
    let t = x.tanh();
    x = t;
    print!("{} ", now(one));
}
println!("{}", now(one));
// %%
let y = loop {
    let z = x.exp();
    if z.len() > 0 {
        break z;
    }
};
println!("{}", now(one));
// %%
let kept: Vec<Array> = (0..3).map(|i| &x + i).collect();
println!("{}", now(one));
for k in kept {
    print!("{} ", now(one));
}
println!("{}", now(one));
// %%
fn consume(x: Array) -> usize {
    x.len()
}
consume(y);
println!("{}", now(one));
// %%
fn early(x: &Array, out: bool, one: u64) -> Array {
    let t = x.tanh();
    if out {
        return t;
    }
    let u = t.exp();
    println!("inside {}", now(one));
    u
}
let a = early(&x, true, one);
println!("{}", now(one));
let b = early(&x, false, one);
println!("{}", now(one));
