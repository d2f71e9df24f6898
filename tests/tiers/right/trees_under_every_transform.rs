tree! {
    #[derive(Clone)]
    struct Layer {
        w: Array,
        b: Array,
    }
}
let net = vec![Layer { w: full([3, 4], 0.5), b: zeros([4]) }, Layer { w: full([4, 2], 0.25), b: ones([2]) }];
let x = linspace(0.0, 1.0, 6).reshape([2, 3]);
fn forward(net: &Vec<Layer>, x: &Array) -> Array {
    let mut h = x.clone();
    for layer in net { h = (h.dot(&layer.w) + &layer.b).tanh(); }
    h
}
let f = jit_tree(|net: &Vec<Layer>, [x]| forward(net, x));
println!("{}", f(&net, [&x]));
println!("{}", f.call(&net, (x.clone(),)));
// %%
println!("{}", f.memory_analysis().argument_size_in_bytes);
println!("{}", f.memory_analysis_of(&net, [&x]).output_size_in_bytes);
println!("{}", f.explain().contains("net[0].w") || f.explain().contains("params[0].w"));
println!("{}", f.donations(&net, [&x]).contains("params[1].b"));
// %%
let slopes = grad_tree(|net: &Vec<Layer>, [x]| forward(net, x).sum());
let kept = checkpoint_tree(|net: &Vec<Layer>, [x]| forward(net, x));
let again = grad_tree(move |net: &Vec<Layer>, x: [&Array; 1]| kept(net, x).sum());
let (a, b) = (slopes(&net, [&x]), again(&net, [&x]));
println!("{} {}", a[0].w, b[0].w);
println!("{} {}", a[1].b, b[1].b);
// %%
let some = checkpoint_tree_with(dots_saveable(), |net: &Vec<Layer>, [x]| forward(net, x).sum());
println!("{}", some(&net, [&x]));
// %%
let each = vmap_tree(|net: &Vec<Layer>, [x]| forward(net, x).sum());
println!("{}", each(&net, [&stack(&[&x, &x], 0)]));
// %%
let wide = vmap_tree_wrt(["params[0].w"], [], |net: &Vec<Layer>, [x]| forward(net, x).sum());
let many = vec![Layer { w: stack(&[&net[0].w, &(&net[0].w * 2.0)], 0), b: net[0].b.clone() }, net[1].clone()];
println!("{}", wide(&many, [&x]));
// %%
let (y, back) = vjp_tree(|net: &Vec<Layer>, [x]| forward(net, x), &net, [&x]);
let slopes = back([&ones([2, 2])]);
println!("{y} {}", slopes[1].b);
let (y, dy) = jvp_tree(|net: &Vec<Layer>, [x]| forward(net, x), &net, [&x], &net);
println!("{y} {dy}");
// %%
let (value, slopes) = value_and_grad_tree(|net: &Vec<Layer>, [x]| forward(net, x).sum())(&net, [&x]);
println!("{value} {}", slopes[0].b);
// %%
let slopes = value_and_grad_tree(|net: &Vec<Layer>, [x]| forward(net, x).sum());
let step = jit_update(move |net: &Vec<Layer>, [x, lr]| {
    let (loss, grads) = slopes(net, [x]);
    (loss, sgd(net, &grads, lr))
}).memory_limit("1MiB");
println!("{}", step.donations(&net, [&x, &full((), 0.1)]).contains("params[0].w"));
let (loss, net) = step(net, [&x, &full((), 0.1)]);
let (loss, net) = step.call(net, (&x, full((), 0.2)));
println!("{loss} {}", net[1].b);
// %%
println!("{}", residuals_tree(|net: &Vec<Layer>, [x]| forward(net, x).sum(), &net, [&x]).contains("params[1].w"));
