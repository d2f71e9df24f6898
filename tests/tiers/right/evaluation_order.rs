fn say(n: i32) -> i32 {
    print!("{n} ");
    n
}
let sum = say(1) + say(2) * say(3);
println!("= {sum}");
// %%
let t = (say(4), [say(5), say(6)]);
println!("{t:?}");
// %%
let mut a = [0; 3];
a[say(1) as usize] = say(7);
println!("{a:?}");
// %%
let mut x = 1;
x += { x = 10; say(5) };
println!("= {x}");
// %%
if say(1) > 0 && say(-1) > 0 || say(2) > 0 {
    println!("true");
}
// %%
let v = [say(3), say(1)].map(|n| say(n * 10));
println!("{v:?}");
// %%
let y = {
    say(8);
    say(9)
} - say(1);
println!("= {y}");
