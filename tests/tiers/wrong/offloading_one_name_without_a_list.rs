// expect: E0308
let policy = save_and_offload_only_these_names(["a"], "b", "device", "pinned_host");
