let mut v = vec![1, 2, 3];
let first = &v[0];
println!("{first}");
v.push(4);
v
// %%
v.push(v.len() as i32);
v[0] = v[1] + v[2];
v.insert(0, v[0]);
v
// %%
let n = v.len();
let last = &mut v[n - 1];
*last += 1;
let again = &mut v[0];
*again = 0;
v
// %%
let mut x = 1;
let r = &mut x;
let s = &mut *r;
*s += 1;
*r += 10;
x += 100;
x
// %%
let mut count = 0;
{
    let mut tick = || count += 1;
    tick();
    tick();
}
count += 10;
count
// %%
fn grow(v: &mut Vec<i32>) -> &mut i32 {
    v.push(0);
    let n = v.len();
    &mut v[n - 1]
}
*grow(&mut v) = 77;
*grow(&mut v) += 7;
v
// %%
let mut a = [1, 2, 3];
for i in 0..a.len() {
    a[i] += a[(i + 1) % a.len()];
}
a
// %%
let (left, right) = a.split_at_mut(1);
left[0] = right[0];
a
// %%
let mut pair = (1, 2);
let p = &mut pair.0;
let q = &mut pair.1;
std::mem::swap(p, q);
pair
// %%
let mut best = &a[0];
for x in &a {
    if x > best {
        best = x;
    }
}
println!("{best}");
a[0] = 0;
a
