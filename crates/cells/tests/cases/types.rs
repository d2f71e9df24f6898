let x: i32 = "a";
// %%
1.0 + 1
// %%
let y = 1i32 + 2i64;
// %%
let größe = 3;
größe.foo()
// %%
let länge: usize = -1;
// %%
prntln!("x");
// %%
printl("x")
// %%
let v = Vec::new();
// %%
let a = 2.0; a.sqrt()
// %%
match Some(3) { Some(n) if n > 1 => n, None => 0 }
// %%
let Some(n) = Some(1);
// %%
println!("{} {}", 1);
// %%
println!("{}", vec![1]);
// %%
break;
// %%
fn f(a: i32) -> i32 { a }
f(1, 2)
// %%
let f = |x: i32| x; f("a")
// %%
if 1 { }
// %%
let x: u8 = 300;
// %%
zeros([2.5])
// %%
let k = 2; fn g() -> i32 { k }
