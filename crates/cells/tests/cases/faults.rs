let v = vec![1, 2];
let done = "before";
v[2]
// %%
done
// %%
let x: u8 = 200;
x + 100
// %%
assert!(v.len() == 3, "got {}", v.len());
// %%
assert_eq!(v[0] + 1, 3);
// %%
let o: Option<i32> = None;
o.unwrap()
// %%
fn f(n: i32) -> i32 { 10 / n }
f(0)
// %%
&v[1..5]
// %%
(i32::MIN).abs()
// %%
panic!("at {done}");
