// expect: none
let s = "text";
println!(s);
