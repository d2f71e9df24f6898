// expect: none
println!("{:q}", 1);
