// expect: E0381
let x;
for i in 0..3 {
    x = i;
    break;
}
println!("{x}");
