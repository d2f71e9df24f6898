let mut a = [3, 1, 2];
a[0] = 7;
a[2] += 5;
a
// %%
a.len() + a[1] as usize
// %%
let zeros5 = [0.0; 5];
zeros5
// %%
let mut grid = [[0; 3]; 2];
grid[1][2] = 9;
grid[0] = [1, 2, 3];
grid
// %%
let b = a;
a[0] = 0;
(a, b)
// %%
(a.contains(&7), b.contains(&7), b.iter().max(), a.first(), b.last())
// %%
let mut c = [5, 3, 9, 1];
c.sort();
c.reverse();
c
// %%
let d = c.map(|x| x * 2);
(d, d.iter().sum::<i32>(), d[1..3].len(), &d[..2])
// %%
let e: [i32; 0] = [];
(e.is_empty(), e.iter().sum::<i32>(), e)
// %%
c.swap(0, 3);
c
