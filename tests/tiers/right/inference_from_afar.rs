let mut v = Vec::new();
let first = v.len();
v.push(1.5f32);
(first, v)
// %%
let x;
let y = 3;
x = y;
let z: u16 = x;
(x, y, z)
// %%
let o = Some(12);
let n: u8 = o.unwrap();
n
// %%
let mut best = None;
for i in [3, 9, 4] {
    match best {
        None => best = Some(i),
        Some(b) if i > b => best = Some(i),
        _ => {}
    }
}
best
// %%
let add = |a: u8, b| a + b;
let small = add(200, 50);
small
// %%
let mut grid = vec![vec![0; 3]; 2];
grid[0][0] = 5u64;
let sum: u64 = grid.iter().map(|row| row.iter().sum::<u64>()).sum();
sum
// %%
let shape = [2, 3];
let k: usize = shape[0];
zeros(shape).len() + k
// %%
let n = 4;
let list = [0; 4];
let all = (0..n).map(|i| list[i]).collect::<Vec<i32>>();
all
// %%
let t = (1, 2.0);
let (a, b): (i64, f32) = t;
(a, b / 3.0)
// %%
let mut acc = 0;
for i in 0..4u8 {
    acc += i;
}
acc
// %%
let steps = 10;
let scale = 1.0 / steps as f64;
let mut t = 0.0;
for _ in 0..steps {
    t += scale;
}
(t, steps)
// %%
let small = 5;
let wide = i64::from(small) + 1;
let float = f64::from(small);
(wide, float)
