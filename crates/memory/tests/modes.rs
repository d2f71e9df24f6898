//! The table of modes and JAX's variables.

use std::collections::BTreeMap;
use vramlab_memory::modes::{FromJax, MODES, from_jax, parse_capacity};
use vramlab_memory::{Fake, GIB, Heap, ModeSpec};

fn error(text: &str) -> String {
    ModeSpec::parse(text).expect_err("not a mode").to_string()
}

#[test]
fn every_mode_of_the_table_works_at_its_defaults() {
    for entry in MODES {
        let spec = ModeSpec::parse(entry.name).expect("a mode of the table");
        assert_eq!(spec.to_string(), entry.name);
        let mut heap = Heap::new(Box::new(Fake::new(GIB)), spec);
        let block = heap.allocate(vramlab_memory::Request::of(1)).expect("fits");
        heap.deallocate(block, vramlab_memory::Stream(0), 0);
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn a_mode_prints_as_it_is_written() {
    for text in ["preallocate", "ondemand gc=on", "ondemand fraction=0.5 gc=on", "platform"] {
        assert_eq!(ModeSpec::parse(text).expect("a valid mode").to_string(), text);
    }
    let spec = ModeSpec::parse(" OnDemand, GC=yes,fraction=0.75 ").expect("a valid mode");
    assert_eq!(spec.to_string(), "ondemand gc=on");
}

#[test]
fn errors_list_what_is_valid_and_the_nearest_spelling() {
    let names: Vec<&str> = MODES.iter().map(|entry| entry.name).collect();
    let unknown = error("on-demand");
    assert!(unknown.contains(&names.join(", ")), "{unknown}");
    assert!(unknown.contains("did you mean `ondemand`?"), "{unknown}");
    assert!(error("").contains("preallocate"));
    let option = error("ondemand fracton=0.5");
    assert!(option.contains("fraction, gc") && option.contains("did you mean `fraction`?"));
    assert_eq!(error("platform gc=on"), "mode platform has no options, so no `gc`");
    assert_eq!(error("ondemand gc=on gc=off"), "option gc is given twice");
    for wrong in ["0", "1.5", "NaN", "-1", "inf", "", "half"] {
        let text = error(&format!("preallocate fraction={wrong}"));
        assert!(text.contains("above 0 and at most 1"), "{text}");
    }
    assert_eq!(ModeSpec::parse("preallocate fraction=1").expect("all of it").fraction(), Some(1.0));
}

fn jax(pairs: &[(&str, &str)]) -> Result<FromJax, String> {
    let map: BTreeMap<String, String> =
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    from_jax(&map).map_err(|error| error.to_string())
}

fn spec(pairs: &[(&str, &str)]) -> String {
    jax(pairs).expect("readable").spec.map_or("none".into(), |spec| spec.to_string())
}

const PREALLOCATE: &str = "XLA_PYTHON_CLIENT_PREALLOCATE";
const FRACTION: &str = "XLA_CLIENT_MEM_FRACTION";
const OLD_FRACTION: &str = "XLA_PYTHON_CLIENT_MEM_FRACTION";
const ALLOCATOR: &str = "XLA_PYTHON_CLIENT_ALLOCATOR";

#[test]
fn jax_variables_choose_the_mode() {
    assert_eq!(spec(&[("HOME", "/")]), "none");
    assert_eq!(spec(&[(PREALLOCATE, "false")]), "ondemand");
    assert_eq!(spec(&[(PREALLOCATE, "true")]), "preallocate");
    assert_eq!(spec(&[(FRACTION, ".10")]), "preallocate fraction=0.1");
    assert_eq!(spec(&[(OLD_FRACTION, "0.5"), (PREALLOCATE, "0")]), "ondemand fraction=0.5");
    assert_eq!(spec(&[(ALLOCATOR, "platform")]), "platform");
    assert_eq!(spec(&[(ALLOCATOR, "BFC"), (PREALLOCATE, "False")]), "ondemand");
    assert_eq!(spec(&[(PREALLOCATE, "")]), "none");
}

#[test]
fn what_jax_would_misread_is_noted() {
    let read = jax(&[(PREALLOCATE, "off")]).expect("understood");
    assert_eq!(read.spec.map(|spec| spec.to_string()).as_deref(), Some("ondemand"));
    assert!(read.notes[0].contains("JAX would preallocate"), "{:?}", read.notes);
    let read = jax(&[(ALLOCATOR, "platform"), (FRACTION, "0.5")]).expect("understood");
    assert!(read.notes[0].contains("no effect"), "{:?}", read.notes);
}

#[test]
fn what_nobody_can_read_is_refused_with_the_valid_words() {
    assert!(jax(&[(PREALLOCATE, "maybe")]).expect_err("refused").contains("on, yes, 1, true"));
    assert!(jax(&[(FRACTION, "1.5")]).expect_err("refused").contains("at most 1"));
    assert!(jax(&[(OLD_FRACTION, "x")]).expect_err("refused").contains(OLD_FRACTION));
    assert!(jax(&[(ALLOCATOR, "magic")]).expect_err("refused").contains("platform"));
    let both = jax(&[(FRACTION, "0.5"), (OLD_FRACTION, "0.6")]).expect_err("refused");
    assert!(both.contains("contradict"), "{both}");
}

#[test]
fn jax_lines_bring_the_mode_back() {
    for text in ["preallocate", "ondemand", "ondemand fraction=0.5", "platform"] {
        let spec = ModeSpec::parse(text).expect("a valid mode");
        let lines = spec.jax_lines();
        let pairs: Vec<(&str, &str)> =
            lines.iter().map(|line| line.split_once('=').expect("NAME=value")).collect();
        let read = jax(&pairs).expect("our own lines").spec.unwrap_or_default();
        assert_eq!(read, spec);
    }
}

#[test]
fn a_capacity_below_one_block_is_refused() {
    assert_eq!(parse_capacity("1GiB"), Ok(GIB));
    assert!(parse_capacity("100").expect_err("too small").contains("256 B"));
    assert!(parse_capacity("lots").is_err());
}
