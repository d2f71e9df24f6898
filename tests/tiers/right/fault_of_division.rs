// faults
let mut d = 2;
while d >= 0 {
    println!("{}", 10 / d);
    d -= 1;
}
