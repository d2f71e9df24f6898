fn net([x, ws @ ..]: [&Array; 9]) -> Array {
    let mut h = x.tanh();
    for w in ws {
        h = h.dot(w).tanh();
    }
    h.sum()
}
let x = ones([256, 8]);
let w = full([8, 8], 0.1);
let free = jit(grad(net));
let a = free([&x, &w, &w, &w, &w, &w, &w, &w, &w]);
let peak = free.memory_analysis().peak_memory_in_bytes;
let bounded = jit(grad(net)).memory_limit("70 KiB");
let b = bounded([&x, &w, &w, &w, &w, &w, &w, &w, &w]);
let least = bounded.memory_analysis().peak_memory_in_bytes;
println!("{} {} {}", least < peak, least <= 70 * 1024, allclose(&a, &b));
