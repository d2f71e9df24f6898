for x in [1.5, 2.5] {
    print!("{x} ");
}
println!();
// %%
let names = ["ab", "cde"];
for name in &names {
    print!("{name}:{} ", name.len());
}
println!("{}", names.len());
// %%
let v = vec![(1, 'a'), (2, 'b')];
for (n, c) in &v {
    print!("{n}{c} ");
}
for (n, c) in v {
    print!("{c}{n} ");
}
println!();
// %%
let mut v = vec![1, 2, 3];
for x in &mut v {
    *x = *x * *x;
}
v
// %%
for (i, row) in [[1, 2], [3, 4]].iter().enumerate() {
    for x in row {
        print!("{} ", i as i32 * 100 + x);
    }
}
println!();
// %%
for chunk in [1, 2, 3, 4, 5].chunks(2) {
    print!("{chunk:?} ");
}
for pair in [1, 2, 3].windows(2) {
    print!("{} ", pair[1] - pair[0]);
}
println!();
