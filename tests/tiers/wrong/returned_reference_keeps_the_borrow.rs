// expect: E0499
fn last(v: &mut Vec<i32>) -> &mut i32 {
    let n = v.len();
    &mut v[n - 1]
}
let mut v = vec![1, 2];
let a = last(&mut v);
let b = last(&mut v);
*a += *b;
