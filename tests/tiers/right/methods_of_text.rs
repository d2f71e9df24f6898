("a-b-c".split("-").count(), "abc".chars().nth(1), "abc".bytes().map(|b| b as i32).sum::<i32>())
// %%
"one two  three".split_whitespace().map(|w| w.len()).collect::<Vec<_>>()
// %%
("  x ".trim_start(), "x=1".split_once('='), "prefix-rest".strip_prefix("prefix-"), "abc".rfind('c'))
// %%
('a'.is_alphabetic(), '7'.to_digit(10), 'x'.to_ascii_uppercase(), ' '.is_whitespace(), 'ß' as u32)
// %%
let mut s = String::from("hello");
s.insert_str(0, ">");
let last = s.pop();
s.truncate(3);
(s, last)
// %%
let text = "line one\nline two";
for (i, line) in text.lines().enumerate() {
    println!("{i}: {line}");
}
// %%
let mut out = String::new();
for (i, c) in "abc".char_indices() {
    out += &format!("{i}{c}");
}
out
// %%
("abc" < "abd", "a".to_string() + "b" == "ab", String::from("x") < String::from("y"))
// %%
let number = 1234.5;
let padded = format!("{number:>10.1}|{:<6}|{:^7}|", "ab", 'c');
(padded.len(), padded)
// %%
"abc".chars().map(|c| (c as u8 + 1) as char).collect::<String>()
// %%
let words: Vec<String> = vec!["x".to_string(), String::from("y"), "z".to_owned()];
words.join("")
