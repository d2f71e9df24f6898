// expect: E0382
#[derive(Debug)]
struct Two { a: String, n: i32 }
let t = Two { a: String::new(), n: 1 };
match t {
    Two { a, n, .. } if n > 5 => println!("{a}"),
    Two { n, .. } => println!("{n}"),
}
println!("{:?}", t);
