let n: i32 = "42".parse().unwrap();
n + "8".parse::<i32>().unwrap_or(0)
// %%
"4x".parse::<i32>()
// %%
match "2.5".parse::<f64>() { Ok(x) => x * 2.0, Err(e) => { println!("{e}"); 0.0 } }
// %%
"x".parse::<u8>().unwrap()
// %%
let p = "1".parse();
// %%
match "1".parse::<u8>() { Ok(n) => n }
// %%
use std::f64::consts::PI;
PI.sin().abs() < 1e-10
// %%
let (even, odd): (Vec<i32>, Vec<i32>) = (1..7).partition(|n| n % 2 == 0);
(even, odd, 'ß'.len_utf8())
// %%
PI.floor()
// %%
(i32::from_str_radix("-ff", 16), u8::from_str_radix("100000000", 2).is_err())
// %%
let sums: Vec<i32> = [1, 2, 3].iter().scan(0, |sum, x| { *sum += x; Some(*sum) }).collect();
let mut s = ["a", "b"].concat();
s.insert(1, '-');
(sums, s)
// %%
let wide: f64 = 5.into();
let text: String = "xyz".into();
let flat: Vec<i32> = vec![vec![1], vec![2, 3]].into_iter().flatten().collect();
(wide, text, flat, [Some(1), None].into_iter().flatten().count())
