// faults
let mut n = i32::MIN + 1;
println!("{}", -n);
n -= 1;
-n
