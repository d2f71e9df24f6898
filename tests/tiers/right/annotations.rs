let a: i64 = 5;
let b: u8 = 200;
let c: f32 = 0.1;
let d: bool = true;
let e: char = 'z';
let f: &str = "text";
let g: String = String::from("owned");
(a, b, c, d, e, f, g.len())
// %%
let t: (i32, f64) = (1, 2.0);
let arr: [u8; 4] = [1, 2, 3, 4];
let v: Vec<f32> = vec![1.0, 2.0];
let o: Option<i32> = None;
let w: Vec<_> = vec![1u8, 2];
(t, arr, v, o, w)
// %%
let nested: [[i32; 2]; 3] = [[1, 2], [3, 4], [5, 6]];
nested
// %%
let r: &[u8] = &arr;
r.len()
// %%
let rows: Vec<Vec<i32>> = vec![vec![1], vec![2, 3], vec![]];
rows
// %%
let f: fn(i32) -> i32 = |x| x + 1;
f(41)
// %%
let empty: Vec<f64> = Vec::new();
let unit: () = ();
(empty, unit)
