// expect: E0382
let v = vec![ones([1])];
let w: Vec<f64> = v.into_iter().map(|x| x.item()).collect();
v.len()
