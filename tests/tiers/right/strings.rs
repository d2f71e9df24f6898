let mut s = String::from("abc");
s.push('d');
s.push_str("ef");
s += "gh";
s
// %%
(s.len(), s.is_empty(), s.contains("cd"), s.starts_with("ab"), s.ends_with('h'))
// %%
let t = s.clone() + "-" + &s;
t
// %%
(t.to_uppercase(), "AbC".to_lowercase(), "  trim ".trim(), "x".repeat(3))
// %%
t.replace("abc", "X")
// %%
"a,b,c".split(',').collect::<Vec<_>>()
// %%
"héllo".chars().rev().collect::<String>()
// %%
("héllo".len(), "héllo".chars().count(), "line\nline".lines().count())
// %%
let n = "42".len() as i32;
let x = "2.5".len() as f64;
(n + 1, x * 2.0)
// %%
let words = vec!["one", "two"];
(words.join(" "), words.len(), 7.to_string(), 1.5.to_string(), 'c'.to_string(), true.to_string())
// %%
let label = format!("{}-{:03}", s, 7);
println!("{label}");
&label[..3]
// %%
s.clear();
s.is_empty()
// %%
let a = "same".to_string();
(a == "same", "same" == a, a.as_str() == "other", a.find('m'), a.is_empty())
