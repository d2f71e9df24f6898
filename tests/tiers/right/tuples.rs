let mut t = (1, 2.5, "three");
t.0 += 10;
t.2 = "drei";
t
// %%
let nested = ((1, 2), (3, (4, 5)));
nested.1.1.0 + nested.0.1
// %%
(1,)
// %%
let copy = t;
t.0 = 0;
(copy.0, t.0)
// %%
(1, 2) == (1, 2) && (1, 2.0) != (1, 3.0)
