let mut counter = 0;
let names = vec!["a".to_string(), "b".to_string()];
let step = 3;
// %%
counter += step;
counter
// %%
fn add(n: i32, by: i32) -> i32 {
    n + by
}
let triple = |x: i32| x * 3;
// %%
counter = add(counter, triple(2));
counter
// %%
for name in &names {
    counter += 1;
    print!("{name}{counter} ");
}
println!("{}", names.len());
// %%
let moved = names;
moved
// %%
counter -= 1;
(counter, moved.len())
// %%
let names = moved.len();
names
