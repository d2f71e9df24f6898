// faults
let x = ones([2, 3]);
println!("before");
// %%
let y = x.dot(&ones([4, 2]));
println!("never");
