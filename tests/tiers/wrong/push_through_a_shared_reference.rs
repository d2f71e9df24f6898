// expect: E0596
fn add(v: &Vec<i32>) {
    v.push(1);
}
