println!("{} {:?} {} {:?}", "text", "text", 'c', 'c');
println!("{:?}", "quote \" tab \t newline \n backslash \\ unicode é");
println!("{:>6}|{:<6}|{:^6}|{:*^7}|{:.2}|{:6.2}|", "ab", "ab", "ab", "ab", "abcdef", "abcdef");
println!("{{}} {{{}}}", 1);
println!("{0} {1} {0} {}", "a", "b");
// %%
let name = "x";
let value = 1.5;
println!("{name} = {value:>6.2} {value:?} {other}", other = name.len());
println!("{}", format!("{name:>4}|{:<4}|", name));
// %%
print!("no newline, ");
print!("then one\n");
println!();
println!("{}", "multi
line");
eprint!("");
// %%
println!("{:?} {:?}", '\'', "it's");
println!("{:5}|{:<5}|{:>5}|", 'x', true, false);
println!("{:?}", "\u{7f}\u{0}\r");
