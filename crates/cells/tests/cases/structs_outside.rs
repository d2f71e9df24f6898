struct Wrapper<T> { inner: T }
// %%
struct Borrowed<'a> { name: &'a str }
// %%
struct Fixed { name: &'static str }
// %%
trait Shape { fn area(&self) -> f64; }
// %%
struct P { x: i32 }
impl std::fmt::Display for P { fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { Ok(()) } }
// %%
enum Kind { A, B }
// %%
#[derive(Hash)]
struct H { x: i32 }
// %%
struct Node { next: Option<Box<Node>> }
// %%
struct Vec { x: i32 }
// %%
#[repr(C)]
struct R { x: i32 }
// %%
struct P { x: i32 }
impl P { fn f<T>(&self, t: T) {} }
// %%
println!("nothing ran");
struct Q { x: T }
// %%
tree! { enum E { A } }
// %%
tree! { struct T<A> { a: A } }
// %%
struct Layer { w: Array }
let l = Layer { w: ones([1]) };
l.wieght
// %%
struct Layer { weight: Array }
// %%
fn f(l: Layer) { l.wieght; }
// %%
fn f(w: Array) { Layer { wieght: w }; }
// %%
fn f(w: Array) { Layr { weight: w }; }
// %%
fn f(x: Layr) {}
