struct Layer { w: Array, b: Array }
impl Layer {
    fn new(n: i32, m: i32) -> Layer { Layer { w: ones([n, m]), b: zeros([m]) } }
    fn forward(&self, x: &Array) -> Array { x.dot(&self.w) + &self.b }
    fn step(self, rate: f64) -> Layer { Layer { w: self.w * (1.0 - rate), b: self.b } }
    fn scale(&mut self, by: f64) { self.w *= by; self.b = &self.b + by; }
}
let l = Layer::new(2, 3);
println!("{}", l.forward(&ones([1, 2])));
println!("{}", memory_stats().bytes_in_use);
// %%
let l = l.step(0.5);
println!("{}", l.w);
let mut l = l;
l.scale(4.0);
println!("{} {}", l.w, l.b);
println!("{}", live_arrays().len());
// %%
let mut net = vec![Layer::new(2, 4), Layer::new(4, 1)];
let x = ones([3, 2]);
let mut h = x.clone();
for layer in &net {
    h = layer.forward(&h).tanh();
}
println!("{:?} {}", h.shape(), live_arrays().len());
net[1].w = net[1].w.clone() * 0.0;
println!("{}", net[1].w.sum().item());
// %%
let removed = net.remove(0);
println!("{}", live_arrays().len());
drop(removed);
println!("{}", live_arrays().len());
drop(net);
println!("{}", live_arrays().len());
// %%
struct Pair { first: Layer, second: Option<Layer>, tail: (Array, [Array; 2]) }
let p = Pair { first: Layer::new(1, 1), second: None, tail: (ones([2]), [ones([1]), zeros([1])]) };
let before = live_arrays().len();
let Pair { first: Layer { w, .. }, .. } = p;
println!("{} {}", w, before - live_arrays().len());
drop(p.tail);
println!("{}", before - live_arrays().len());
// %%
let f = jit(|[x, w]| x.dot(w).tanh());
let l = Layer::new(2, 2);
println!("{}", f([&ones([1, 2]), &l.w]));
println!("{}", f.call((ones([1, 2]), l.w)));
println!("{}", l.b);
