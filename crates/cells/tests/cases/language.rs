fn fib(n: u64) -> u64 { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }
fib(15)
// %%
let mut v = vec![1, 2, 3];
for i in (0..10).step_by(3).rev() { v.push(i); }
v.retain(|x| x % 2 == 1);
v
// %%
let total: i32 = v.iter().enumerate().map(|(i, x)| i as i32 * x).sum();
println!("{total:>6}|{:<4}|{:^5}|{:08.3}|{:e}|{:#x}|{:?}", 7, "ab", -2.5, 1500.0, 255, "q\n");
// %%
'outer: for i in 1.. { for j in 1..i { if i * j > 30 { println!("{i} {j}"); break 'outer; } } }
let found = loop { break 42; };
match (found, v.first()) { (0, _) => "zero", (40..=50, Some(&1)) => "forties", _ => "other" }
// %%
let counter = { let mut n = 0; move || { n += 1; n } };
let mut counter = counter;
(counter(), counter(), counter())
// %%
let words: Vec<String> = "the quick brown fox".split(' ').map(|w| w.to_uppercase()).collect();
let [first, .., last] = [1, 2, 3, 4];
(words.join("-"), first, last)
// %%
fn half(n: i32) -> Option<i32> { if n % 2 == 0 { Some(n / 2) } else { None } }
fn quarter(n: i32) -> Option<i32> { half(half(n)?) }
(quarter(12), quarter(6))
// %%
const N: usize = 2 + 1;
let grid = [[0.5; N]; 2];
(grid, grid.len() * grid[0].len(), N)
// %%
let mut a = 1; let mut b = 2;
(a, b) = (b, a + b);
std::mem::swap(&mut a, &mut b);
(a, b)
// %%
let text = input("name? ");
display(&text);
text
// %%
let n = v.len();
n
