// faults
let by = 40;
println!("{}", 1i64 << by);
1i32 << by
