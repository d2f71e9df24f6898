// expect: E0502
fn push_len(v: &mut Vec<usize>, n: &usize) {
    v.push(*n);
}
let mut v = vec![1];
push_len(&mut v, &v[0]);
