let a = vec![1, 2, 3];
let b = a.clone();
let c = a;
(b, c)
// %%
fn total(v: Vec<i32>) -> i32 {
    let mut sum = 0;
    for x in v {
        sum += x;
    }
    sum
}
let d = vec![4, 5];
let sum = total(d.clone()) + total(d);
sum
// %%
fn push_all(into: &mut Vec<i32>, from: &[i32]) {
    for x in from {
        into.push(*x);
    }
}
let mut e = Vec::new();
push_all(&mut e, &[1, 2]);
push_all(&mut e, &vec![3]);
e
// %%
let taken = std::mem::take(&mut e);
(taken, e)
