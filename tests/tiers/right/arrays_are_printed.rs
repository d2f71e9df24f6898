let x = array([[1.5, -2.25], [0.0, 1000.0]]);
println!("{x}");
println!("{:?}", x);
println!("{}", x.sum());
// %%
println!("{:.2}", x.t());
// %%
let i = array([1, 20, 300]);
println!("{i} {:?}", i.shape());
// %%
println!("{}", x.gt(0.0));
// %%
arange(2000)
// %%
ones([2, 2, 2])
// %%
array([1e-8, 1e8])
// %%
array([0.1, 0.2]) + 1e-9
// %%
full((), 3.0)
// %%
println!("{:?}", (ones([2]), 1));
// %%
println!("{:?} {:?}", vec![ones([1])], Some(zeros([2, 2])));
// %%
display(&x);
display(&5);
