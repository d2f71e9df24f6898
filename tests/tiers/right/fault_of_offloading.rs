// faults
let policy = save_and_offload_only_these_names(["a"], ["a"], "device", "pinned_host");
