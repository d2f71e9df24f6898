fn describe(v: &[i32]) -> String {
    match v {
        [] => "empty".to_string(),
        [one] => format!("one: {one}"),
        [first, .., last] if first == last => format!("ends in {last}"),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}
for v in [vec![], vec![7], vec![1, 2, 1], vec![1, 2, 3]] {
    println!("{}", describe(&v));
}
