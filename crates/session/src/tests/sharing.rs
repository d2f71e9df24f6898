//! Cases of several owners, at the level of cells: sessions of one process are strangers at a shared device, as
//! sessions of several are.

use super::{MIB, ok, run};
use crate::{Config, Session};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

const GIB: u64 = 1 << 30;

/// A place for ledgers that goes with the test.
struct Lab(PathBuf);

impl Lab {
    fn new() -> Lab {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Lab(std::env::temp_dir().join(format!("vramlab-session-{process}-{count}")))
    }

    fn open(&self, device: &str, capacity: &str, mode: &str) -> Session {
        let mut config = Config {
            device: Some(device.into()),
            capacity: (!capacity.is_empty()).then(|| capacity.into()),
            mode: Some(mode.into()),
            ..Config::default()
        };
        let folder = self.0.to_str().expect("a path of text").to_string();
        config.env.insert("VRAMLAB_SHARED_FOLDER".into(), folder);
        Session::new(config).expect("a session")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// As [`super::fails`], with the lines of a verdict joined.
#[track_caller]
fn fails(session: &mut Session, cell: &str, kind: &str) -> String {
    flat(&super::fails(session, cell, kind))
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn pool(session: &mut Session) -> u64 {
    run(session, "%mem").1.memory.pool_bytes
}

#[test]
fn mode_fraction_of_total() {
    // Each may hold 0.15 of the whole, in whatever order they come and whatever is held by then.
    for mode in ["preallocate fraction=0.15", "ondemand fraction=0.15"] {
        let lab = Lab::new();
        let mut sessions: Vec<Session> =
            (0..6).map(|_| lab.open("dry:16GiB:card", "", mode)).collect();
        let order = if mode.starts_with("pre") { [0, 1, 2, 3, 4, 5] } else { [5, 2, 0, 4, 1, 3] };
        for index in order {
            let session = &mut sessions[index];
            ok(session, "let a = zeros([2000, 1024, 256]);");
            let (_, result) = run(session, "%mem");
            assert_eq!(result.memory.bytes_limit, (16.0 * 0.15 * GIB as f64) as u64, "{mode}");
            let text = fails(session, "let b = zeros([1000, 1024, 256]);", "OOM");
            assert!(text.contains("LIMIT"), "{text}");
        }
        let table = ok(&mut sessions[0], "%peers");
        assert_eq!(
            table.lines().filter(|line| line.contains("fraction=0.15")).count(),
            6,
            "{table}"
        );
    }
}

const BACKED_OFF: u64 = 528_361_728;

fn backs_off(session: &mut Session, holder: &str) {
    let (text, result) = run(session, "let a = zeros([1024]);");
    assert!(result.error.is_none(), "{text}");
    assert_eq!(result.memory.pool_bytes, BACKED_OFF);
    let [note] = &result.memory.notes[..] else { panic!("{:?}", result.memory.notes) };
    for words in ["wanted 768.0 MiB and got 503.9 MiB after 5 driver calls", holder] {
        assert!(note.contains(words), "{words} is missing in {note}");
    }
}

#[test]
fn mode_backoff_beside_a_peer() {
    let lab = Lab::new();
    let mut peer = lab.open("cpu:lab", "1GiB", "platform");
    let mut session = lab.open("cpu:lab", "1GiB", "preallocate");
    ok(&mut peer, "let held = zeros([512, 1024, 256]);");
    backs_off(&mut session, &format!("pid {} vramlab 512.0", std::process::id()));
    // A pool that was made small grows by a second region once the peer is gone.
    let cell = "let big = zeros([600, 1024, 256]);";
    let text = fails(&mut session, cell, "OOM");
    assert!(text.contains("OTHER PROCESS") && text.contains("without them it passes"), "{text}");
    drop(peer);
    ok(&mut session, "drop(a);");
    let text = fails(&mut session, cell, "OOM");
    assert!(text.contains("passes preallocate after %clear pool · ondemand"), "{text}");
    ok(&mut session, "%clear pool");
    ok(&mut session, cell);
}

#[test]
fn mode_backoff_beside_a_guest() {
    for device in ["cpu", "dry:1GiB"] {
        let capacity = "1GiB";
        let lab = Lab::new();
        let mut session = lab.open(device, capacity, "preallocate");
        assert!(ok(&mut session, "%guest 512MiB").contains("guest 1 got 512.0"));
        backs_off(&mut session, "guest 1");
        let text = fails(&mut session, "let big = zeros([700, 1024, 256]);", "OOM");
        assert!(text.contains("guest 1 in this process 512.0"), "{text}");
        assert!(text.contains("free what the other package holds"), "{text}");
    }
    // The other order: the pool is whole, and the guest gets nothing.
    let lab = Lab::new();
    let mut session = lab.open("cpu", "1GiB", "preallocate");
    ok(&mut session, "let a = zeros([1024]);");
    assert_eq!(pool(&mut session), 768 * MIB);
    assert!(ok(&mut session, "%guest 512MiB").contains("got nothing"));
}

#[test]
fn mode_two_sessions() {
    let pools = |fraction: &str, first_is_first: bool| {
        let lab = Lab::new();
        let mode = format!("preallocate fraction={fraction}");
        let mut both = [(); 2].map(|_| lab.open("dry:16GiB:card", "", &mode));
        if !first_is_first {
            both.reverse();
        }
        both.each_mut().map(|session| {
            ok(session, "let a = zeros([1024]);");
            pool(session) as f64 / GIB as f64
        })
    };
    for order in [true, false] {
        let [first, second] = pools("0.75", order);
        assert_eq!((first, format!("{second:.2}")), (12.0, "3.77".to_string()));
        assert_eq!(pools("0.45", order).map(|pool| format!("{pool:.1}")), ["7.2", "7.2"]);
    }
}

#[test]
fn guest_starved() {
    for (device, capacity) in [("cpu", "1GiB"), ("dry:1GiB", "1GiB"), ("cpu:lab", "1GiB")] {
        let lab = Lab::new();
        let mut session = lab.open(device, capacity, "preallocate fraction=0.98");
        ok(&mut session, "let a = zeros([2560, 1024]); drop(a);");
        let text = flat(&ok(&mut session, "%guest 64MiB"));
        for words in [
            "asked 64.0 of the driver and got nothing",
            "driver free 20.5; we hold 1003.5, of which 0.0 live",
            "%clear pool returns them, then it passes",
            "it passes in ondemand fraction=0.98 · ondemand fraction=0.98 gc=on · platform · caching · preallocate fraction=0.9",
        ] {
            assert!(text.contains(words), "{device}: {words} is missing in {text}");
        }
        // And so it is, for each of them.
        ok(&mut session, "%mode platform");
        assert!(ok(&mut session, "%guest 64MiB").contains("guest 1 got 64.0"));
        assert!(ok(&mut session, "%guest").contains("67108864"));
        assert!(ok(&mut session, "%smi").contains("guests beside our pool: 64.0"));
        // The other order: the pool backs off beside the guest.
        ok(&mut session, "%mode preallocate fraction=0.98");
        ok(&mut session, "let a = zeros([2560, 1024]);");
        assert_eq!(pool(&mut session), 947_040_256, "{device}");
        assert!(fails(&mut session, "%guest free 7", "command").contains("there are 1"));
        assert!(ok(&mut session, "%guest free").contains("1 guest left, 64.0 MiB returned"));
        assert!(ok(&mut session, "%guest").contains("no guest holds memory"));
    }
    let lab = Lab::new();
    let mut session = lab.open("cpu", "1GiB", "preallocate");
    ok(&mut session, "let a = zeros([2560, 1024]); drop(a);");
    for mode in ["ondemand fraction=0.98", "caching", "preallocate fraction=0.9"] {
        ok(&mut session, &format!("%mode {mode}"));
        ok(&mut session, "let a = zeros([2560, 1024]); drop(a);");
        assert!(ok(&mut session, "%guest 64MiB").contains("got 64.0"), "{mode}");
        ok(&mut session, "%guest free");
    }
}

#[test]
fn guest_sizes_that_nobody_can_have() {
    let lab = Lab::new();
    let mut session = lab.open("cpu", "1GiB", "ondemand");
    assert!(fails(&mut session, "%guest 0", "command").contains("gets nothing"));
    assert!(fails(&mut session, "%guest lots", "command").contains("not a size"));
    for size in ["2GiB", "9223372036854775808", "18446744073709551615"] {
        let text = ok(&mut session, &format!("%guest {size}"));
        assert!(
            text.contains("got nothing") && text.contains("more than the device has"),
            "{text}"
        );
    }
    ok(&mut session, "zeros([4]).sum().item()");
}

#[test]
fn guest_verdict() {
    for mode in
        ["preallocate", "ondemand", "ondemand gc=on", "platform", "caching", "vmm", "cuda_async"]
    {
        let lab = Lab::new();
        let mut peer = lab.open("dry:24GiB:card", "", "platform");
        let mut session = lab.open("dry:24GiB:card", "", mode);
        ok(&mut peer, "let held = zeros([24512, 1024, 256]);");
        let cell = "let mut kept: Vec<Array> = vec![];\nloop { kept.push(zeros([1536, 1024])); }";
        let text = fails(&mut session, cell, "OOM");
        let pid = std::process::id();
        assert!(text.contains("OTHER PROCESS"), "{mode}: {text}");
        assert!(text.contains(&format!("pid {pid} vramlab 24512.0")), "{mode}: {text}");
        // With a hole in the pool it is still the other process.
        let text = fails(&mut session, "kept.remove(1);\nlet more = zeros([4096, 1024]);", "OOM");
        assert!(text.contains("OTHER PROCESS"), "{mode}: {text}");
        drop(peer);
        ok(&mut session, "let more = zeros([4096, 1024]);");
    }
}

#[test]
fn trim_says() {
    let lab = Lab::new();
    let mut session = lab.open("cpu:lab", "1GiB", "ondemand");
    let mut peer = lab.open("cpu:lab", "1GiB", "platform");
    ok(&mut session, "let small = zeros([256]);");
    ok(&mut session, "let large = zeros([512, 1024, 256]); drop(large);");
    let cell = "let a = zeros([600, 1024, 256]);";
    assert!(fails(&mut peer, cell, "OOM").contains("others hold 514.0 of 1024.0"));
    let text = ok(&mut session, "%clear pool");
    assert!(text.contains("1 regions, 512.0 MiB returned; 2.0 MiB kept"), "{text}");
    assert!(text.contains("pinned by small"), "{text}");
    ok(&mut peer, cell);
}

/// Both pools do not fit side by side, and a peer waits for the room in which the arrays land again.
#[test]
fn a_switch_through_the_host_keeps_its_room() {
    let lab = Lab::new();
    let mut session = lab.open("cpu:lab", "256MiB", "preallocate");
    let mut peer = lab.open("cpu:lab", "256MiB", "platform");
    ok(&mut session, "let a = arange(40 * 1024 * 256);");
    ok(&mut peer, "let b = zeros([60, 1024, 256]);");
    let text = ok(&mut session, "%mode platform");
    assert!(text.contains("moves 1 array"), "{text}");
    let back = ok(&mut session, "%mode preallocate fraction=0.7");
    assert!(back.contains("moves 1 array"), "{back}");
    assert_eq!(ok(&mut session, "a.slice(10485759..10485760).item()").trim(), "10485759.0");
    assert_eq!(ok(&mut peer, "b.sum().item()").trim(), "0.0");
}

#[test]
fn the_greeting_says_who_is_there() {
    let lab = Lab::new();
    let mut first = lab.open("cpu:lab", "1GiB", "ondemand");
    assert!(first.banner().contains("cpu:lab (a CPU device of 1024 MiB, not a GPU, shared)"));
    assert!(first.banner().contains("the first one here; others join with --device cpu:lab"));
    ok(&mut first, "let a = zeros([4]);");
    let second = lab.open("cpu:lab", "1GiB", "platform");
    let greeting = second.banner();
    let words = format!("shared with pid {} vramlab (ondemand, holds 2.0)", std::process::id());
    assert!(greeting.contains(&words), "{greeting}");
    assert!(first.banner().contains("(platform, holds 0.0)"), "{}", first.banner());
    let alone = lab.open("cpu", "1GiB", "platform");
    assert!(!alone.banner().contains("shared"), "{}", alone.banner());
}

#[test]
fn a_device_of_ones_own_has_no_peers() {
    let lab = Lab::new();
    let mut session = lab.open("cpu", "1GiB", "ondemand");
    ok(&mut session, "let a = zeros([2560, 1024]);");
    ok(&mut session, "%guest 1MiB");
    let table = ok(&mut session, "%peers");
    assert!(table.contains("17.0") && table.contains("--device cpu:NAME"), "{table}");
    assert!(table.contains("1.0 of ours are guests'"), "{table}");
}
