//! `%stats`: the names of JAX and of PyTorch over one state.

use super::{MIB, fails, ok, session};

fn value(text: &str, name: &str) -> i64 {
    let row = text.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")));
    let row = row.unwrap_or_else(|| panic!("{name} is missing in\n{text}"));
    row.split_whitespace().last().expect("a value").parse().expect("a figure")
}

#[test]
fn jax_names_in_every_mode() {
    for mode in ["preallocate", "ondemand", "platform", "cuda_async", "vmm", "caching"] {
        let mut session = session(&[("mode", mode)]);
        ok(&mut session, "let a = zeros([3, 1024, 256]); let t = zeros([9, 1024, 256]); drop(t);");
        let text = ok(&mut session, "%stats");
        assert_eq!(value(&text, "requested_bytes"), 3 << 20, "{mode}\n{text}");
        assert!(value(&text, "peak_bytes_in_use") >= 12 << 20, "{mode}\n{text}");
        assert_eq!(value(&text, "num_allocs"), 2, "{mode}");
        ok(&mut session, "%stats reset");
        let text = ok(&mut session, "%stats jax");
        assert_eq!(value(&text, "peak_bytes_in_use"), value(&text, "bytes_in_use"), "{mode}");
        let text = ok(&mut session, "%stats torch");
        assert_eq!(value(&text, "requested_bytes.all.current"), 3 << 20, "{mode}\n{text}");
        assert_eq!(value(&text, "requested_bytes.all.peak"), 3 << 20, "{mode}\n{text}");
        assert_eq!(value(&text, "allocation.all.freed"), 1, "{mode}\n{text}");
        assert_eq!(text.contains("small_pool"), mode == "caching", "{mode}");
    }
}

#[test]
fn torch_names_in_caching_mode() {
    let mut session = session(&[("mode", "caching")]);
    ok(&mut session, "let a = zeros([3, 1024, 256]); let b = zeros([100]);");
    let text = ok(&mut session, "%stats torch");
    for (name, expected) in [
        ("allocated_bytes.all.current", 3 * MIB + 512),
        ("requested_bytes.small_pool.current", 400),
        ("reserved_bytes.all.current", 22 * MIB),
        ("segment.large_pool.current", 1),
        ("inactive_split_bytes.large_pool.current", 17 * MIB),
        ("num_ooms", 0),
    ] {
        assert_eq!(value(&text, name), expected as i64, "{name}");
    }
    fails(&mut session, "let c = zeros([2000, 1024, 256]);", "OOM");
    assert_eq!(value(&ok(&mut session, "%stats torch"), "num_ooms"), 1);
    let text = ok(&mut session, "%stats summary");
    assert!(text.starts_with(&format!("|{}|", "=".repeat(75))), "{text}");
    assert!(text.contains("OOMs: 1"), "{text}");
    assert!(text.contains("| Allocated memory      |   3072 KiB |"), "{text}");
    assert!(text.contains("|       from small pool |      0 KiB |"), "{text}");
    assert!(fails(&mut session, "%stats troch", "command").contains("torch"));
}
