// expect: E0507
fn call(f: impl Fn() -> Array) -> Array {
    f()
}
let x = ones([1]);
call(move || x)
