// expect: E0382, E0505
let v = vec![1, 2];
for x in &v {
    drop(v);
}
