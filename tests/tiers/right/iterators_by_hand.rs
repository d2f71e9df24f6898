let v = vec![1, 2, 3];
let mut it = v.iter();
let first = it.next();
let rest: Vec<_> = it.collect();
(first, rest)
// %%
let mut it = (1..4).rev();
while let Some(n) = it.next() {
    print!("{n} ");
}
println!("{:?}", it.next());
// %%
let mut chars = "ab".chars();
(chars.next(), chars.next(), chars.next())
// %%
for i in 250..=255u8 {
    print!("{i} ");
}
println!();
// %%
((0..0).max(), (0..5).max(), (1..=4).product::<i32>(), (1..=4).min())
// %%
(0..10).step_by(3).map(|x| x * x).filter(|x| x % 2 == 0).collect::<Vec<i32>>()
// %%
(1..=3).flat_map(|i| (0..i)).collect::<Vec<_>>()
// %%
(v.iter().rev().enumerate().map(|(i, x)| i as i32 * x).sum::<i32>(), v.iter().skip(1).step_by(1).count())
// %%
let even: Vec<i32> = (1..7).filter(|n| n % 2 == 0).collect();
let odd: Vec<i32> = (1..7).filter(|n| n % 2 == 1).collect();
(even, odd)
// %%
v.iter().take_while(|x| **x < 3).chain(&[9]).cloned().collect::<Vec<i32>>()
// %%
(v.iter().find(|x| **x > 1), v.iter().last(), v.iter().nth(1), v.iter().max_by_key(|x| (**x - 2).abs()))
// %%
let mut sorted = vec![2.5, -1.0, 9.0];
sorted.sort_by(|a, b| b.partial_cmp(a).unwrap());
sorted
// %%
let mut words = vec!["pear", "fig", "apple"];
words.sort_by_key(|w| w.len());
words
// %%
let total: f64 = [0.5, 1.5].into_iter().sum();
total
// %%
vec![vec![1, 2], vec![3]].into_iter().flat_map(|row| row).collect::<Vec<_>>()
