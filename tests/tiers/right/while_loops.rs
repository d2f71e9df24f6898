let mut n = 27;
let mut steps = 0;
while n != 1 {
    n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
    steps += 1;
}
steps
// %%
let mut i = 0;
while i < 10 {
    i += 1;
    if i % 3 != 0 {
        continue;
    }
    if i > 8 {
        break;
    }
    print!("{i} ");
}
println!("then {i}");
// %%
let mut stack = vec![1, 2, 3];
while let Some(top) = stack.pop() {
    if top == 2 {
        stack.push(20);
        stack.push(30);
    }
    print!("{top} ");
    if stack.len() > 5 {
        break;
    }
}
println!();
