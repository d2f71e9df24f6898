// expect: E0382
let v = vec![1, 2, 3];
for x in v {
    print!("{x}");
}
v.len()
