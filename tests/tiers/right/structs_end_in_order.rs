struct Holder { a: Array, n: usize, b: (Array, Array) }
fn holder(n: usize) -> Holder {
    Holder { a: zeros([n as i32]), n, b: (zeros([10]), zeros([20])) }
}
fn live(word: &str) { println!("{word} {}", live_arrays().len()); }
live("start");
{
    let h = holder(5);
    live("made");
    let Holder { a, .. } = h;
    live("taken");
    drop(a);
    live("dropped");
}
live("end");
// %%
let mut h = holder(1);
h = holder(2);
live("assigned");
h.b.0 = zeros([1]);
live("part assigned");
let _ = h.a;
live("looked at");
let _moved = h.a;
live("moved");
h.a = zeros([7]);
live("given back");
println!("{}", h.n);
// %%
let n = holder(3).n;
live("temporary");
let a = holder(3).a;
live("part of a temporary");
let f = move || h.a.len() + h.n;
live("captured");
println!("{}", f());
drop(f);
live("closure dropped");
// %%
let base = holder(4);
let made = Holder { n: 9, ..base };
live("moved from base");
let made = Holder { a: zeros([1]), ..made };
live("shadowed");
let made = Holder { a: zeros([1]), n: 1, ..holder(8) };
live("temporary base");
println!("{} {}", made.n, made.b.1.len());
