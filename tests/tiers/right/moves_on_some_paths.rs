fn pick(first: bool, x: Array, y: Array) -> Array {
    if first {
        return x;
    }
    drop(x);
    y
}
(pick(true, ones([1]), zeros([1])).item(), pick(false, ones([1]), zeros([1])).item())
// %%
let mut x = ones([2]);
let y = x;
x = &y + 1.0;
println!("{x} {y}");
// %%
let mut w = ones([2]);
for i in 0..3 {
    let t = w;
    w = t * 2.0;
}
w
// %%
let v = vec![1, 2, 3];
let mut i = 0;
let out = loop {
    i += 1;
    if i == 3 {
        break v;
    }
};
out
// %%
let s = String::from("kept");
let n = 3;
let len = if n > 5 {
    let t = s;
    t.len()
} else {
    s.len()
};
len
// %%
let z;
if n > 2 {
    z = ones([2]);
} else {
    z = zeros([2]);
}
let u = z + 1.0;
u
// %%
let o = Some(ones([3]));
let k = match &o {
    Some(x) => x.len(),
    None => 0,
};
let inner = o.unwrap();
(k, inner.sum().item())
// %%
let t = (ones([1]), zeros([1]));
let a = t.0;
let b = t.1;
(a - b).item()
// %%
let mut t = (ones([1]), 5);
let a = t.0;
t.0 = a * 3.0;
println!("{} {}", t.0, t.1);
// %%
let pair = (String::from("a"), String::from("b"));
let (left, _) = pair;
println!("{left} {}", pair.1);
// %%
let list = vec![String::from("x"), String::from("y")];
let mut out = String::new();
for item in list {
    if item == "y" {
        break;
    }
    out = item;
}
out
