// expect: E0434
let k = 3;
// %%
fn scaled(x: i32) -> i32 {
    x * k
}
