let x = array([1.0, 2.0, 3.0]);
x.gt(1.5)
// %%
x.le(2.0)
// %%
x.eq(&array([1.0, 0.0, 3.0]))
// %%
x.ne(2)
// %%
x.ge(2).logical_and(x.lt(3))
// %%
select(x.gt(1.5), &x, 0.0)
// %%
select(x.gt(1.5), 1, -1)
// %%
x.gt(1.5).any()
// %%
x.gt(1.5).all().item_as::<bool>()
// %%
x.gt(0.0).logical_not()
