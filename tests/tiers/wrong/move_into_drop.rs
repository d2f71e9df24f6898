// expect: E0382
let x = ones([2]);
// %%
drop(x);
println!("{x}");
