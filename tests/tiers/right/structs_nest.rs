#[derive(Debug, Clone, PartialEq)]
struct Layer { w: Vec<f64>, b: f64 }
#[derive(Debug, Clone, PartialEq)]
struct Net { layers: Vec<Layer>, head: (Layer, [i32; 2]), name: Option<String> }
fn layer(n: usize, b: f64) -> Layer { Layer { w: vec![1.0; n], b } }
fn net() -> Net {
    Net { layers: vec![layer(1, 0.5), layer(2, 1.5)], head: (layer(1, 0.0), [1, 2]), name: None }
}
let mut n = net();
n.layers[1].w[0] = 7.0;
n.layers[0].b += 2.0;
n.head.0.b -= 1.0;
n.head.1[1] *= 10;
n.name = Some("net".to_string());
println!("{:?}", n);
println!("{}", n == net());
// %%
for (i, l) in n.layers.iter_mut().enumerate() {
    l.b = i as f64;
    l.w.push(0.25);
}
println!("{:?}", n.layers);
let total: f64 = n.layers.iter().map(|l| l.w.iter().sum::<f64>() + l.b).sum();
println!("{total}");
// %%
let first = &n.layers[0];
let name = n.name.clone();
println!("{} {:?}", first.w.len(), name);
let last = &mut n.layers[1];
last.w.clear();
println!("{:?}", n.layers[1]);
// %%
let Net { layers, head, .. } = n;
println!("{} {:?}", layers.len(), head.1);
// %%
let grid = [[layer(1, 1.0), layer(1, 2.0)], [layer(2, 3.0), layer(0, 4.0)]];
println!("{}", grid[1][0].b + grid[0][1].b);
let t = (layer(1, 9.0), 1);
println!("{}", t.0.b);
let o = Some(layer(3, 1.0));
if let Some(Layer { w, b }) = &o {
    println!("{} {}", w.len(), b);
}
println!("{:?}", o.map(|l| l.w.len()));
// %%
let mut v = vec![layer(1, 3.0), layer(2, 1.0), layer(3, 2.0)];
v.sort_by(|a, b| a.b.partial_cmp(&b.b).unwrap());
println!("{:?}", v.iter().map(|l| l.w.len()).collect::<Vec<_>>());
println!("{}", v.contains(&layer(2, 1.0)));
v.retain(|l| l.b > 1.0);
println!("{}", v.len());
let taken = v.remove(0);
println!("{:?}", taken);
let Layer { w, b: bias } = v.pop().unwrap();
println!("{} {}", w.len(), bias);
