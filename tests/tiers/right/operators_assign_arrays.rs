let mut x = array([1.0, 2.0, 4.0]);
let y = array([10.0, 20.0, 40.0]);
x += &y;
x
// %%
x -= 1.0;
x *= 2;
x
// %%
x /= &y;
x %= 2.0;
x
// %%
x += y;
x
// %%
x = x.tanh() * 0.0;
x
