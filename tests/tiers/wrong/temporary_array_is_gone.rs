// expect: E0716
let first = ones([2]).to_vec::<f32>().first();
println!("{first:?}");
