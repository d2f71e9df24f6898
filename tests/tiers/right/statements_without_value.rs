let a = 1;
// %%
a + 1;
// %%
;
// %%
// only a comment
// %%
println!("{a}")
// %%
for _ in 0..1 {}
// %%
if a > 5 {
    println!("no");
}
// %%
let b = a;
b
