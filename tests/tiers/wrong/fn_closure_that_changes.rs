// expect: E0594
fn call(f: impl Fn()) {
    f();
}
let mut n = 0;
call(|| n += 1);
