let v = vec![1.0, 2.0, 3.0];
let sum: f64 = v.iter().sum();
let product: f64 = v.iter().product();
(sum, product)
// %%
let doubled: Vec<f64> = v.iter().map(|x| x * 2.0).collect();
doubled
// %%
for (i, x) in v.iter().enumerate() {
    print!("{i}:{x} ");
}
println!();
// %%
let w = [10, 20, 30];
let pairs: Vec<(f64, i32)> = v.iter().zip(w.iter()).map(|(a, b)| (*a, *b)).collect();
pairs
// %%
let dot: f64 = v.iter().zip(&doubled).map(|(a, b)| a * b).sum();
dot
// %%
let evens: Vec<i32> = (0..10).filter(|n| n % 2 == 0).collect();
evens
// %%
(1..=5).rev().map(|n| n * n).collect::<Vec<i32>>()
// %%
(1..=5).fold(1, |a, b| a * b)
// %%
(w.iter().any(|x| *x > 25), w.iter().all(|x| *x > 25), w.iter().position(|x| *x == 20), w.iter().count())
// %%
let scaled: Vec<i32> = w.into_iter().map(|x| x / 10).collect();
(scaled.iter().copied().max(), scaled.iter().min().unwrap(), scaled.iter().rev().collect::<Vec<_>>())
// %%
(0..3).map(|i| (0..i).sum::<i32>()).sum::<i32>()
// %%
let largest = v.iter().fold(f64::MIN, |a, b| a.max(*b));
let taken: Vec<i32> = (0..).take(3).collect();
let skipped: Vec<i32> = (0..6).skip(4).collect();
(largest, taken, skipped)
// %%
let mut m = vec![1, 2, 3];
for x in m.iter_mut() {
    *x *= 10;
}
for x in &mut m {
    *x += 1;
}
m
// %%
["a", "b"].iter().chain(["c"].iter()).map(|s| s.to_string()).collect::<Vec<String>>()
// %%
v.iter().map(|x| x.to_string()).collect::<Vec<_>>().join("-")
