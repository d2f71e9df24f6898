// expect: E0596
let rows = vec![vec![1], vec![2]];
for row in &rows {
    row.push(3);
}
