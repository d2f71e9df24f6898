// expect: E0382
let step = jit_update(|w: &Array, [g]| w - g * 0.1);
let w = ones([3]);
let g = ones([3]);
let next = step(w, [&g]);
println!("{w}");
