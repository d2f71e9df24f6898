// faults
let mut n = i32::MAX - 2;
for _ in 0..5 {
    n += 1;
    println!("{n}");
}
