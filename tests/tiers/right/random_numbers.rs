seed(0);
let a = randn([4]);
let b = randn([4]);
(a.eq(&b).all().item_as::<bool>(), a.len())
// %%
seed(0);
let c = randn([4]);
c.eq(&a).all().item_as::<bool>()
// %%
c
// %%
uniform([3])
// %%
rand([2, 2]).lt(1.0).all().item()
// %%
randint([5], 0, 10)
// %%
seed(7);
println!("{:.4}", randn([1000]).mean().item());
