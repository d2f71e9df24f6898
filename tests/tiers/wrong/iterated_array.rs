// expect: E0277
let x = ones([3]);
for v in x {
    println!("{v}");
}
