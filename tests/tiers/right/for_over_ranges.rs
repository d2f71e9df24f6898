for i in 0..3 {
    print!("{i} ");
}
println!();
// %%
for i in (0..=10).step_by(5) {
    print!("{i} ");
}
println!();
// %%
for i in (0..5).rev() {
    print!("{i} ");
}
println!();
// %%
for i in (20..200).step_by(60).rev() {
    print!("{i} ");
}
println!();
// %%
let mut sum = 0u64;
for i in 1..=10 {
    sum += i;
}
sum
// %%
for i in 5..3 {
    println!("never {i}");
}
// %%
let n = 4;
let mut triangle = 0;
for i in 0..n {
    for j in 0..=i {
        triangle += i * j;
    }
}
triangle
// %%
for c in 'a'..='e' {
    print!("{c}");
}
println!();
// %%
for _ in 0..2 {
    print!("again ");
}
println!();
// %%
(0..10).contains(&3) && !(0..10).contains(&10)
// %%
let r = 2..5;
(r.start, r.end, r.len(), r)
