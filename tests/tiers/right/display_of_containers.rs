println!("{:?} {:?} {:?}", (1, 2.0, "x"), [1, 2], vec![1.5]);
println!("{:?} {:?}", Some("a"), None::<i32>);
println!("{:?} {:?} {:?}", (), (1,), ((1, 2), [Some(3)]));
println!("{:.1?} {:5?} {:02?}", vec![1.25, 2.0], [1, 2], [1, 2]);
// %%
println!("{:#?}", vec![1, 2]);
// %%
println!("{:#?}", (1, "a", [Some(1.5), None]));
// %%
println!("{:?} {:?} {:?} {:?}", 1..3, ..3, 1.., 1..=3);
// %%
let empty: Vec<i32> = vec![];
println!("{:?} {:#?} {:?}", empty, empty, [[0u8; 2]; 2]);
// %%
println!("{:?}", vec!['a', 'b']);
println!("{:?}", ["x".to_string(), String::new()]);
