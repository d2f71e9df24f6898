let x = 1
let y = 2;
// %%
let x = 1
// %%
let v = vec![1, 2] // a comment

println!("{:?}", v);
// %%
fn f() -> i32 {
    let n = (1 + 2)
    n
}
// %%
let s = "ä"   let t = 1;
// %%
let x =
