#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version { major: u32, minor: u32 }
#[derive(Debug, PartialEq, PartialOrd)]
struct Measure(f64, Option<String>);
let a = Version { major: 1, minor: 2 };
let b = Version { minor: 0, major: 2 };
println!("{} {} {} {}", a == b, a != b, a < b, a >= b);
println!("{:?}", if a > b { a } else { b });
let mut v = vec![b, a, Version { major: 1, minor: 0 }];
v.sort();
println!("{:?}", v);
println!("{:?}", v.iter().max());
// %%
println!("{}", Measure(1.0, None) == Measure(1.0, None));
println!("{}", Measure(f64::NAN, None) == Measure(f64::NAN, None));
println!("{}", Measure(1.0, None) < Measure(1.0, Some("x".into())));
assert_eq!(Measure(2.0, Some("m".to_string())), Measure(2.0, Some("m".to_string())));
assert_ne!(a, b, "versions");
println!("{}", &a == &a);
println!("{}", [a, b] == [a, b]);
println!("{}", Some(a) > None);
println!("{}", (a, 1) < (a, 2));
// %%
match a {
    Version { major: 0, .. } => println!("zero"),
    Version { major: 1, minor: 0..=1 } => println!("old"),
    Version { major, minor } => println!("{major}.{minor}"),
}
match (a, b) {
    (Version { major: 2, .. }, _) => println!("first"),
    (_, Version { major: 2, minor }) => println!("second {minor}"),
    _ => println!("neither"),
}
let found = v.iter().position(|x| matches_major(x, 2));
fn matches_major(v: &Version, major: u32) -> bool { v.major == major }
println!("{:?}", found);
