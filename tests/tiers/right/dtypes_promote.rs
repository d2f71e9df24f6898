let f = ones([2]);
let d = ones_as(F64, [2]);
let i = ones_as(I32, [2]);
let l = ones_as(I64, [2]);
let u = ones_as(U8, [2]);
let b = array([true, false]);
let h = ones_as(F16, [2]);
((&f + &d).dtype(), (&f + &i).dtype(), (&i + &l).dtype(), (&u + &i).dtype(), (&b + &i).dtype())
// %%
((&h + &f).dtype(), (&h + &i).dtype(), (&u + &u).dtype(), (&b + &b).dtype())
// %%
((&i + 1).dtype(), (&i + 1.5).dtype(), (&u * 2).dtype(), (&h * 2.0).dtype(), (&d * 2.0).dtype(), (&b * 2).dtype())
// %%
&i + 1.5
// %%
(&i / &i).dtype()
// %%
&i / 2
// %%
u.gt(0.5).dtype()
// %%
i.sin().dtype()
// %%
(i.sum().dtype(), u.sum().dtype(), f.sum().dtype(), i.mean().dtype(), b.sum().dtype())
// %%
i.convert(F32).dtype()
// %%
array([1.9, -1.9, 300.0]).convert(U8)
// %%
array([1.9, -1.9, 300.0]).astype(I32)
