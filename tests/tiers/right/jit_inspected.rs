let f = jit(|[x]| x.tanh().sum());
let y = f([&ones([256])]);
let a = f.memory_analysis();
(a.argument_size_in_bytes, a.output_size_in_bytes, a.alias_size_in_bytes)
// %%
f.explain().len() > 0
// %%
f.lower([&ones([8])]).contains("tanh")
// %%
println!("{}", f.donations([&ones([4])]).starts_with("argument 0"));
