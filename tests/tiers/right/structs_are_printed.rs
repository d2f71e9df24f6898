#[derive(Debug, Clone)]
struct Inner { a: i32, b: Vec<f64> }
#[derive(Debug, Clone)]
struct Outer { name: String, inner: Inner, pair: (bool, char), more: Option<Inner> }
#[derive(Debug)]
struct Wrap(Inner, i32);
#[derive(Debug)]
struct Unit;
#[derive(Debug)]
struct One(f32);
let inner = Inner { a: -1, b: vec![0.5, 2.0] };
let outer = Outer { name: "n\n\"q".into(), inner: inner.clone(), pair: (true, 'c'), more: Some(inner.clone()) };
println!("{:?}", outer);
println!("{:#?}", outer);
println!("{:?} {:#?}", Wrap(inner.clone(), 2), Wrap(inner.clone(), 3));
println!("{:?} {:#?} {:5?}|", Unit, Unit, Unit);
println!("{:?} {:#?} {:.3?} {:8?}", One(1.5), One(0.1), One(0.1), One(1.0));
println!("{:05?} {:+?}", inner, inner);
println!("{:#?}", vec![Unit, Unit]);
println!("{:#?}", (Unit, Some(One(2.0))));
// %%
outer
// %%
Wrap(inner, 4)
// %%
[Unit, Unit]
// %%
Some(One(1.0))
