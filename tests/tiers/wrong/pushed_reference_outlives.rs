// expect: E0597
let mut refs = Vec::new();
for i in 0..3 {
    let x = i * 2;
    refs.push(&x);
}
println!("{}", refs.len());
