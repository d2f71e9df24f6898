fn net([h, w]: [&Array; 2]) -> Array {
    let a = checkpoint_name(h.dot(w).tanh(), "a");
    let b = checkpoint_name(a.dot(w).tanh(), "b");
    (&b * &b).sum()
}
let h = full([4, 3], 0.25);
let w = linspace(-0.5, 0.5, 9).reshape([3, 3]);
let plain = grad(net)([&h, &w]);
plain.shape()
// %%
let both = save_and_offload_only_these_names(["a"], ["b"], "device", "pinned_host");
let one = save_and_offload_only_these_names([], ["a", "b"], "device", "pinned_host");
let dots = offload_dot_with_no_batch_dims("device", "pinned_host");
for policy in [both, one, dots] {
    let f = grad(checkpoint_with(policy, net));
    println!("{}", allclose(&f([&h, &w]), &plain));
}
// %%
let g = jit(grad(checkpoint_with(offload_dot_with_no_batch_dims("device", "pinned_host"), net)));
println!("{}", allclose(&g([&h, &w]), &plain));
g.memory_analysis().host_temp_size_in_bytes
// %%
let policy = save_and_offload_only_these_names(["b"], ["a"], "device", "pinned_host");
let text = residuals(checkpoint_with(policy, net), [&h, &w]);
println!("{}", text.contains("in 1 value, 48 B in 1 value offloaded to pinned_host"));
text.contains("f32<host>[4,3]")
