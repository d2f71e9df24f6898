let (a, b) = (1, "two");
let (c, (d, e)) = (3.0, ('4', true));
(a, b, c, d, e)
// %%
let [x, y, z] = [1, 2, 3];
x + y * z
// %%
let [[p, q], [r, s]] = [[1, 2], [3, 4]];
p * s - q * r
// %%
let (mut m, n) = (1, 2);
m += n;
(m, n)
// %%
let (first, .., last) = (1, 2, 3, 4);
let [head, ..] = [5, 6, 7];
let [_, tail @ ..] = [8, 9, 10];
(first, last, head, tail)
// %%
let (mut i, mut j) = (0, 1);
(i, j) = (j, i + j);
(i, j) = (j, i + j);
[i, j] = [j * 10, i * 10];
(i, j)
// %%
let pair = ((1, 2), [3, 4]);
let ((_, k), [l, _]) = pair;
pair.0.1 + pair.1[0] + k + l
// %%
let whole @ (left, _) = (7, 8);
(whole, left)
