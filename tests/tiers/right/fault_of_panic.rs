// faults
fn check(n: i32) -> i32 {
    if n > 2 {
        panic!("{n} is too large");
    }
    n
}
println!("{}", check(1));
check(3)
