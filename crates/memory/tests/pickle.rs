//! Pickles as data: what Python writes in every protocol is read, and nothing that a file says is run.

use std::path::Path;
use vramlab_memory::conformance::Random;
use vramlab_memory::trace::pickle::{Pickle, PickleError, Value, ValueId};
use vramlab_memory::trace::torch::{self, SnapshotError};
use vramlab_memory::{CachingOptions, GIB};

fn file(protocol: u8) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pickles");
    std::fs::read(folder.join(format!("protocol{protocol}.pickle"))).expect("a test file")
}

/// A value as Python would print it, more or less.
fn show(pickle: &Pickle<'_>, id: ValueId) -> String {
    let all =
        |ids: &[ValueId]| ids.iter().map(|id| show(pickle, *id)).collect::<Vec<_>>().join(" ");
    match pickle.value(id) {
        Value::None => "None".into(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Big(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Text(_) => pickle.text(id).expect("a text").to_string(),
        Value::Bytes(_) => format!("{:?}", pickle.bytes(id).expect("bytes")),
        Value::Sequence(items) => format!("[{}]", all(items)),
        Value::Dict(entries) => {
            let entry = |(key, value): &(ValueId, ValueId)| {
                format!("{}: {}", show(pickle, *key), show(pickle, *value))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

#[test]
fn every_protocol_reads_the_same() {
    let expected = "{a: [1 -2 70000 1099511627776 -1099511627776 18446744073709551615], \
                    b: [None true false 1.5 HELLO], c: {n: {}}, \
                    d: [[] [] [1] [1 2] [1 2 3] [1 2 3 4]], s: [[7] [7]]}";
    for protocol in 0..=5 {
        let bytes = file(protocol);
        let pickle = Pickle::read(&bytes).expect("a pickle of data");
        // Protocol 0 escapes what is not ASCII; everything newer is UTF-8.
        let text = if protocol == 0 { "h\u{fffd}llo" } else { "héllo" };
        let shown = show_lossy(&pickle, protocol);
        assert_eq!(shown, expected.replace("HELLO", text), "protocol {protocol}");
        let shared = pickle.get(pickle.root(), "s").expect("an entry");
        let items = pickle.items(shared);
        assert_eq!(items[0], items[1], "a shared list is one value");
    }
}

fn show_lossy(pickle: &Pickle<'_>, protocol: u8) -> String {
    let shown = show(pickle, pickle.root());
    if protocol == 0 { shown.replace("[104, 233, 108, 108, 111]", "h\u{fffd}llo") } else { shown }
}

#[test]
fn code_is_refused_by_name() {
    let cases: [(&[u8], &str); 4] = [
        (b"cposix\nsystem\n(S'true'\ntR.", "posix.system"),
        (b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.", "posix.system"),
        (b"(S'true'\nios\nsystem\n.", "os.system"),
        (b"\x80\x02]}b.", "an object's state"),
    ];
    for (bytes, name) in cases {
        match Pickle::read(bytes) {
            Err(PickleError::Code { name: found, .. }) => assert_eq!(found, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    let words = Pickle::read(cases[0].0).expect_err("refused").to_string();
    assert!(words.contains("posix.system") && words.contains("only data is read"), "{words}");
}

#[test]
fn a_file_cut_anywhere_is_an_error_in_words() {
    for protocol in 0..=5 {
        let bytes = file(protocol);
        for length in 0..bytes.len() {
            let error = Pickle::read(&bytes[..length]).expect_err("no end mark");
            assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn hostile_files_neither_crash_nor_grow() {
    // A million lists within each other, a list within itself, lengths beyond the file, a stack that is not there.
    let mut deep = vec![0x80, 4];
    deep.extend([b']'].repeat(1_000_000));
    deep.extend([b'a'].repeat(999_999));
    deep.push(b'.');
    assert!(Pickle::read(&deep).is_ok());
    assert!(Pickle::read(b"]q\x00h\x00a.").is_ok());
    for wrong in [
        &b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff."[..],
        b"X\xff\xff\xff\x7fabc.",
        b"\x8b\xff\xff\xff\xff.",
        b"h\x07.",
        b"j\xff\xff\xff\xff.",
        b".",
        b"a.",
        b"(.",
        b"e.",
        b"u.",
        b"t.",
        b"N(\x85.",
        b"]N(a.",
        b"Ns.",
        b"}(Nu.",
        b"I12x\n.",
        b"\x80\x06N.",
        b"\x8a\x0b\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01.",
        b"\xff",
        b"",
    ] {
        if let Ok(pickle) = Pickle::read(wrong) {
            panic!("{wrong:?} was read as {:?}", pickle.value(pickle.root()));
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random::new(11);
    for protocol in 0..=5 {
        let good = file(protocol);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.bits() as u8;
            }
            if let Ok(pickle) = Pickle::read(&bytes) {
                let _ = pickle.get(pickle.root(), "a");
            }
            let _ = torch::read(&bytes);
        }
    }
}

/// A snapshot in protocol 0, so that it can be read here: one segment, one block that was out before the recording.
const SNAPSHOT: &str = "(dVsegments\n((dVaddress\nI4096\nsVtotal_size\nI2097152\nsVstream\nI0\ns\
    Vsegment_type\nVsmall\nsVblocks\n((dVaddress\nI4096\nsVsize\nI2097152\nsVstate\nVinactive\nsl\
    slsVdevice_traces\n(((dVaction\nValloc\nsVaddr\nI4608\nsVsize\nI300\nsVstream\nI0\ns\
    (dVaction\nVfree_completed\nsVaddr\nI4096\nsVsize\nI512\nsVstream\nI0\ns\
    (dVaction\nVfree_completed\nsVaddr\nI4608\nsVsize\nI300\nsVstream\nI0\nslls.";

#[test]
fn the_state_at_the_start_is_found_by_undoing() {
    let devices = torch::read(SNAPSHOT.as_bytes()).expect("a snapshot");
    let options = CachingOptions::of(GIB);
    let images = torch::state_at_start(&devices[0], &options);
    assert_eq!(images.len(), 1);
    assert_eq!(images[0].used, [(4096, 512, 512)]);
    let found = torch::predict(&devices[0], options);
    assert_eq!((found.allocs, found.right, found.strays), (1, 1, 0));
    let trace = torch::trace(&devices[0]);
    assert_eq!((trace.start, trace.steps.len()), (1, 4));
    // The same recording with the block elsewhere is found wrong.
    let moved = SNAPSHOT.replace("I4608", "I8192");
    let devices = torch::read(moved.as_bytes()).expect("a snapshot");
    assert_eq!(torch::predict(&devices[0], options).first_wrong, Some(0));
}

#[test]
fn damaged_snapshots_are_errors_or_harmless() {
    let missing = torch::read(b"}.").expect_err("no segments");
    assert_eq!(missing, SnapshotError::NotASnapshot { what: "it has no segments" });
    assert!(torch::read(&SNAPSHOT.as_bytes()[..200]).is_err());
    let mut random = Random::new(5);
    for _ in 0..20_000 {
        let mut bytes = SNAPSHOT.as_bytes().to_vec();
        for _ in 0..1 + random.below(5) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = b"0123456789\nsld("[random.below(15) as usize];
        }
        for device in torch::read(&bytes).unwrap_or_default() {
            let options = torch::options_of(&device);
            let _ = torch::predict(&device, options);
            let _ = torch::trace(&device);
        }
    }
}
