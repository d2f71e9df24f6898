// expect: E0061
let policy = save_and_offload_only_these_names(["a"], ["b"], "device");
