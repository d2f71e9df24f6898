fn name(n: i32) -> &'static str {
    match n {
        0 => "zero",
        1 | 2 => "few",
        3..=9 => "some",
        i32::MIN..=-1 => "negative",
        _ => "many",
    }
}
for n in [0, 1, 2, 3, 9, 10, -5] {
    print!("{} ", name(n));
}
println!();
// %%
let x = 15;
match x {
    n if n % 15 == 0 => println!("fizzbuzz"),
    n if n % 5 == 0 => println!("buzz {n}"),
    n => println!("{n}"),
}
// %%
let kind = match x {
    low @ 0..=9 => low * 10,
    high @ (10 | 15 | 20) => high * 100,
    other => other,
};
kind
// %%
match 'q' {
    'a'..='m' => 1,
    'n'..='z' => 2,
    _ => 3,
}
// %%
match true {
    true => "yes",
    false => "no",
}
// %%
match "b" {
    "a" => 1,
    "b" | "c" => 2,
    _ => 3,
}
// %%
let v = match x {
    -1 => -100,
    _ => {
        let t = x + 1;
        t * 2
    }
};
v
// %%
match 2.5 {
    x if x < 1.0 => "small",
    x if x < 3.0 => "medium",
    _ => "large",
}
