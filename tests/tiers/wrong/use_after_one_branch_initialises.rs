// expect: E0381
let n = 3;
let x;
if n > 5 {
    x = 1;
}
println!("{x}");
