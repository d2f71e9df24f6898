#[derive(Debug)]
struct Model { weights: Vec<f64>, names: Vec<String>, step: usize }
impl Model {
    fn touch(&mut self) {
        for w in self.weights.iter_mut() {
            *w += self.step as f64;
        }
        self.step += 1;
    }
    fn both(&mut self) -> (&mut Vec<f64>, &Vec<String>) {
        (&mut self.weights, &self.names)
    }
    fn grow(&mut self) {
        let n = self.weights.len();
        self.weights.push(self.step as f64 + n as f64);
        let mut add = || self.step += 10;
        add();
        add();
        self.names.push("grown".to_string());
    }
    fn each(&mut self) {
        let step = &mut self.step;
        self.weights.iter().for_each(|w| *step += *w as usize);
    }
}
let mut m = Model { weights: vec![1.0, 2.0], names: vec![], step: 1 };
let w = &mut m.weights;
let s = &mut m.step;
w[0] += 1.0;
*s += 1;
println!("{:?}", m);
// %%
m.touch();
m.grow();
m.each();
println!("{:?}", m);
// %%
let (w, n) = m.both();
w.push(n.len() as f64);
println!("{:?}", m);
// %%
let names = &m.names;
m.weights[0] = names.len() as f64;
println!("{:?}", names);
// %%
let mut count = || m.step += 1;
count();
println!("{}", m.weights.len());
// %%
let read = || m.weights.len() + m.names.len();
let step = m.step;
println!("{} {}", read(), step);
m.step = 0;
// %%
let taken = move || m.names.len();
println!("{}", taken());
// %%
struct Nested { left: Model, right: Model }
fn small() -> Model { Model { weights: vec![0.0], names: vec![], step: 0 } }
let mut n = Nested { left: small(), right: small() };
let l = &mut n.left;
let r = &mut n.right.weights;
l.step = 4;
r.push(1.5);
println!("{:?} {:?}", n.left, n.right);
// %%
let mut f = || n.left.weights.push(2.5);
n.right.step += 1;
f();
let g = || n.left.step;
n.right.touch();
println!("{} {}", g(), n.right.step);
// %%
fn halves(n: &mut Nested) -> (&mut Model, &mut Model) { (&mut n.left, &mut n.right) }
let (a, b) = halves(&mut n);
std::mem::swap(a, b);
println!("{:?} {:?}", n.left.weights, n.right.weights);
