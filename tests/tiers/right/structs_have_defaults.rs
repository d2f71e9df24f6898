#[derive(Debug, Clone, Default, PartialEq)]
struct Options { name: String, rate: f64, sizes: Vec<usize>, nested: Inner, flag: Option<bool>, pair: (i32, char), grid: [u8; 3] }
#[derive(Debug, Clone, Default, PartialEq)]
struct Inner { on: bool, unit: () }
let o = Options { rate: 0.1, ..Default::default() };
println!("{:?}", o);
let p: Options = Default::default();
println!("{}", p == Options::default());
let q = Options { name: "q".into(), ..Options::default() };
println!("{:#?}", q);
// %%
fn run(options: &Options) -> f64 { options.rate * 2.0 }
println!("{}", run(&Options { rate: 2.5, ..Default::default() }));
let mut r = Options::default();
let old = std::mem::take(&mut r.sizes);
println!("{:?} {:?}", old, r.sizes);
let prior = std::mem::replace(&mut r.name, "new".to_string());
println!("{prior:?} {}", r.name);
let whole = std::mem::take(&mut r);
println!("{} {:?}", whole.name, r.name);
