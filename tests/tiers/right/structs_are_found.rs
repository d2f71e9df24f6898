#[derive(Debug, Clone)]
struct Layer { name: String, size: usize }
struct Net { layers: Vec<Layer>, default: Layer }
impl Net {
    fn find(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }
    fn first_over(&self, least: &usize) -> Option<&Layer> {
        self.layers.iter().filter(|layer| layer.size > *least).next()
    }
    fn get(&self, name: &str) -> &Layer {
        for layer in &self.layers {
            if layer.name == name {
                return layer;
            }
        }
        &self.default
    }
    fn get_mut(&mut self, name: &str) -> &mut Layer {
        match self.layers.iter().position(|layer| layer.name == name) {
            Some(at) => &mut self.layers[at],
            None => &mut self.default,
        }
    }
    fn largest(&self) -> &Layer {
        let start = &self.default;
        self.layers.iter().fold(start, |a, b| if b.size > a.size { b } else { a })
    }
    fn named<'a>(&'a self, other: &'a Net, name: &str) -> &'a Layer {
        if self.layers.len() > 1 { self.get(name) } else { other.get(name) }
    }
}
fn layer(name: &str, size: usize) -> Layer { Layer { name: name.to_string(), size } }
let mut net = Net { layers: vec![layer("a", 1), layer("b", 5)], default: layer("none", 0) };
println!("{:?} {:?}", net.find("b"), net.find("c"));
println!("{:?} {:?}", net.first_over(&2), net.get("x"));
net.get_mut("a").size = 9;
net.get_mut("z").size += 1;
println!("{:?} {:?}", net.largest(), net.default);
// %%
let key = String::from("b");
let found = net.find(&key);
drop(key);
println!("{:?}", found);
// %%
let other = Net { layers: vec![], default: layer("other", 3) };
let l = {
    let name = String::from("a");
    net.named(&other, &name)
};
println!("{:?} {:?}", l, other.named(&net, "b"));
// %%
fn biggest(layers: &[Layer], least: usize) -> Option<&Layer> {
    let bound = least + 1;
    layers.iter().find(|layer| layer.size > bound)
}
println!("{:?}", biggest(&net.layers, 5));
