let mut v = vec![1, 2, 3];
v.push(4);
v.push(5);
v
// %%
let last = v.pop();
let none: Option<i32> = Vec::new().pop();
(last, none, v.len())
// %%
v.insert(1, 10);
let gone = v.remove(0);
(gone, v[0], v.len())
// %%
v.retain(|x| x % 2 == 0);
v
// %%
v.extend([7, 8, 9]);
v.extend(vec![1, 2]);
v.truncate(5);
v
// %%
v.swap(0, 1);
v.sort();
v.dedup();
v.reverse();
v
// %%
let (small, large) = (v.iter().min(), v.iter().max());
println!("{small:?} {large:?}");
(v.is_empty(), v.contains(&7), v.first(), v.last(), v.get(1), v.get(100))
// %%
let mut w = v.clone();
w[0] = -1;
w.clear();
(v == w, w.len())
// %%
let filled = vec![0.5; 4];
let total: f64 = filled.iter().sum();
(filled, total)
// %%
let mut grid = vec![vec![0; 2]; 2];
grid[0][1] = 5;
grid[1].push(6);
grid
// %%
while let Some(x) = v.pop() {
    print!("{x} ");
}
println!();
v.len()
