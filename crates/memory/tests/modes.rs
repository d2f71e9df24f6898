//! The table of modes and JAX's variables.

use std::collections::BTreeMap;
use vramlab_memory::modes::{
    FromJax, MODES, TORCH_VARIABLES, from_jax, from_torch, from_torch_variables, parse_capacity,
};
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
    for text in [
        "caching",
        "caching max_split_size=128MiB",
        "caching fraction=0.5 garbage_collection_threshold=0.8",
        "caching roundup_power2_divisions=4 expandable_segments=on",
    ] {
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
    for text in
        ["preallocate", "ondemand", "ondemand fraction=0.5", "platform", "vmm", "cuda_async"]
    {
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

fn torch(conf: &str) -> Result<FromJax, String> {
    from_torch(conf).map_err(|error| error.to_string())
}

#[test]
fn pytorch_conf_in_its_own_syntax() {
    let read = |conf| torch(conf).expect("readable").spec.unwrap_or_default().to_string();
    assert_eq!(read(""), "caching");
    assert_eq!(read("max_split_size_mb:128"), "caching max_split_size=128MiB");
    assert_eq!(read("expandable_segments:True"), "caching expandable_segments=on");
    assert_eq!(
        read(" max_split_size_mb:64 , roundup_power2_divisions:[256:1,512:2,>:4],backend:native"),
        ModeSpec::parse("caching max_split_size=64MiB roundup_power2_divisions=[256:1,512:2,>:4]")
            .expect("a valid mode")
            .to_string()
    );
    let noted = torch("garbage_collection_threshold:0.8,pinned_num_register_threads:4");
    let noted = noted.expect("readable");
    assert_eq!(noted.notes.len(), 2, "{:?}", noted.notes);
    for wrong in [
        "max_split_size_mb:19",
        "max_split_size_mb:x",
        "max_split_size:128",
        "garbage_collection_threshold:1.5",
        "roundup_power2_divisions:3",
        "expandable_segments:maybe",
        "backend:magic",
        "max_split_size_mb:128,expandable_segments:True",
        "max_split_size_mb:",
        "max_split_size_mb",
        "max_split_size_mb:128.5",
        "max_split_size_mb:-1",
        "max_split_size_mb:99999999999999999999",
        "max_split_size_mb:99999999999999",
        "max_split_size_mb:128MiB",
        "garbage_collection_threshold:0",
        "garbage_collection_threshold:1",
        "garbage_collection_threshold:1.0",
        "garbage_collection_threshold:nan",
        "garbage_collection_threshold:-0.5",
        "garbage_collection_threshold:",
        "roundup_power2_divisions:0",
        "roundup_power2_divisions:[256:1,512:2",
        "roundup_power2_divisions:[300:2]",
        "roundup_power2_divisions:[256:3]",
        "roundup_power2_divisions:[]",
        "expandable_segments:true",
        "expandable_segments:1",
        "expandable_segments",
        "per_process_memory_fraction:1.5",
        "max_split_size_mb:128,,expandable_segments:False",
        "max_split_size_mb:128 expandable_segments:False",
        ":",
        "unknown_key:1",
    ] {
        assert!(torch(wrong).is_err(), "{wrong}");
    }
    // As PyTorch's lexer: spaces mean nothing, a comma may end it, the last of two wins.
    assert_eq!(read("max_split_size_mb : 128 ,"), "caching max_split_size=128MiB");
    assert_eq!(read("max_split_size_mb:64,max_split_size_mb:128"), "caching max_split_size=128MiB");
    assert_eq!(read("max_split_size_mb:20"), "caching max_split_size=20MiB");
    assert_eq!(
        read("per_process_memory_fraction:0.5,garbage_collection_threshold:0.8"),
        "caching fraction=0.5 garbage_collection_threshold=0.8"
    );
    assert_eq!(
        read("roundup_power2_divisions:[64:8, 256:4,>:1],"),
        read("roundup_power2_divisions:[64:8,256:4,>:1]")
    );
    let nearest = torch("expandable_segment:True").expect_err("misspelt");
    assert!(nearest.contains("did you mean `expandable_segments`?"), "{nearest}");
}

#[test]
fn pytorch_variables_of_all_names() {
    let read = |pairs: &[(&str, &str)]| {
        let map = pairs.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        from_torch_variables(&map).map(|read| read.spec.map(|spec| spec.to_string()))
    };
    let split = || Ok(Some("caching max_split_size=64MiB".to_string()));
    for name in TORCH_VARIABLES {
        assert_eq!(read(&[(name, "max_split_size_mb:64")]), split());
        assert_eq!(read(&[(name, " ")]), Ok(None));
    }
    let both = |a, b| read(&[("PYTORCH_ALLOC_CONF", a), ("PYTORCH_CUDA_ALLOC_CONF", b)]);
    assert_eq!(both("max_split_size_mb:64", "max_split_size_mb: 64,"), split());
    let why = both("max_split_size_mb:64", "max_split_size_mb:65").expect_err("contradict");
    assert!(why.to_string().contains("contradict"), "{why}");
}

#[test]
fn every_spelling_of_a_fraction_is_right_or_refused() {
    for (text, right) in [("1", "1"), ("1.0", "1"), (".5", "0.5"), ("5e-1", "0.5"), ("+0.5", "0.5")]
    {
        let mode = ModeSpec::parse(&format!("preallocate fraction={text}")).expect(text);
        assert_eq!(mode.fraction().map(|f| f.to_string()).as_deref(), Some(right), "{text}");
        assert_eq!(spec(&[(FRACTION, text)]), mode.to_string());
    }
    for text in [
        "0",
        "0.0",
        "-0.5",
        "1.5",
        "1.0000001",
        "NaN",
        "nan",
        "inf",
        "-inf",
        "75%",
        "3/4",
        "0x1",
        "half",
        "",
    ] {
        for mode in ["preallocate", "ondemand", "cuda_async", "vmm", "caching"] {
            let why = error(&format!("{mode} fraction={text}"));
            assert!(why.contains("at most 1"), "{mode} {text}: {why}");
        }
        if !text.is_empty() {
            assert!(jax(&[(FRACTION, text)]).is_err(), "{text}");
        }
    }
    let why = error("preallocate fraction=0,75");
    assert!(why.contains("`0,75`") && why.contains("0.75"), "{why}");
    assert!(error("ondemand gc=on fraction=0,5").contains("0.5"));
    assert!(jax(&[(FRACTION, "0,75")]).is_err());
}

#[test]
fn options_of_caching_in_pytorch_syntax() {
    let read = |text| ModeSpec::parse(text).map(|spec| spec.to_string());
    assert_eq!(
        read("caching max_split_size_mb:64,roundup_power2_divisions:[256:1,>:4]"),
        read("caching max_split_size=64MiB roundup_power2_divisions=[256:1,>:4]")
    );
    assert_eq!(read("caching expandable_segments:True,"), read("caching expandable_segments=on"));
    assert!(error("caching max_split_size_mb:1").contains("at least 20"));
}

#[test]
fn options_that_make_no_sense_are_refused_with_the_reason() {
    for granule in ["0", "64KiB", "3MiB", "2GiB", "unlimited"] {
        assert!(error(&format!("vmm granule={granule}")).contains("multiple of 2MiB"), "{granule}");
    }
    assert!(error("caching max_split_size=19MiB").contains("at least 20MiB"));
    assert!(error("caching garbage_collection_threshold=0.8").contains("under a limit"));
    assert!(error("caching max_split_size=1GiB expandable_segments=on").contains("choose one"));
    assert!(error("caching fraction=0.5 garbage_collection_threshold=1").contains("below 1"));
}

#[test]
fn a_limit_below_what_a_mode_takes_at_once_is_refused() {
    let supports = |mode: &str, capacity: u64| {
        let mut heap = Heap::new(Box::new(Fake::new(capacity)), ModeSpec::default());
        heap.supports(&ModeSpec::parse(mode).expect("a mode")).map_err(|why| why.to_string())
    };
    let mib = 1 << 20;
    for (mode, enough) in [
        ("preallocate fraction=1", 256),
        ("ondemand fraction=1", 256),
        ("platform", 1),
        ("cuda_async fraction=1", 2 * mib),
        ("vmm fraction=1", 2 * mib),
        ("vmm fraction=1 granule=64MiB", 2 * mib),
        ("caching", 2 * mib),
        ("caching expandable_segments=on", 2 * mib),
    ] {
        assert_eq!(supports(mode, enough), Ok(()), "{mode}");
        if enough > 1 {
            let why = supports(mode, enough - 1).expect_err("too little");
            assert!(why.contains("larger capacity"), "{why}");
        }
    }
}
