for n in 1..=15 {
    match (n % 3, n % 5) {
        (0, 0) => print!("fizzbuzz "),
        (0, _) => print!("fizz "),
        (_, 0) => print!("buzz "),
        _ => print!("{n} "),
    }
}
println!();
// %%
let point = (3, -3);
match point {
    (x, y) if x == -y => println!("anti-diagonal at {x}"),
    (0, y) => println!("on y at {y}"),
    (x, 0) => println!("on x at {x}"),
    _ => println!("elsewhere"),
}
// %%
let nested = (1, (2, [3, 4]));
match nested {
    (1, (two, [three, ..])) => two + three,
    (_, (_, [_, last])) => last,
}
// %%
match [1, 2, 3] {
    [1, middle, _] => middle * 10,
    [.., last] => last,
}
// %%
match (true, false) {
    (true, true) => "both",
    (true, false) | (false, true) => "one",
    (false, false) => "none",
}
