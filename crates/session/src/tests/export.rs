//! `%export`: files that others open, whole or not at all.

use super::{fails, ok, session};
use crate::why::why_text;
use vramlab_memory::trace::torch;

/// A folder that goes with the test.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("vramlab-export-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of ASCII").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn why_reads_the_profile_back_with_equal_figures() {
    let folder = Folder::new("why");
    let mut session = session(&[("mode", "caching")]);
    ok(
        &mut session,
        "let x = ones([1024, 1024]); let params = vec![zeros([300]), zeros([70, 70])];",
    );
    ok(&mut session, "let f = jit(|[x]| x.tanh().sum()); f([&x])");
    let file = folder.path("memory.pb.gz");
    let text = ok(&mut session, &format!("%export pprof {file}"));
    assert!(text.contains("4 buffers, ") && text.contains(&file), "{text}");
    let said = why_text(&std::fs::read(&file).expect("a file"));
    let said: serde_json::Value =
        serde_json::from_str(&said.json_line("memory")).expect("a line of JSON");
    let report = session.context.report();
    let code: u64 = session.context.caches().iter().map(|entry| entry.code_bytes).sum();
    assert_eq!(said["in_use_bytes"], report.figures.requested_bytes + code);
    let owners = said["owners"].as_array().expect("owners");
    let bytes_of = |name: &str| {
        let owner = owners.iter().find(|owner| owner["name"] == name);
        owner.unwrap_or_else(|| panic!("no {name} in {said}"))["bytes"].as_u64()
    };
    assert_eq!(bytes_of("x"), Some(4 << 20));
    assert_eq!(bytes_of("params[1]"), Some(70 * 70 * 4));
    assert_eq!(bytes_of("Out[2]"), Some(4));
}

#[test]
fn viz_protocol_of_a_session_replays() {
    let folder = Folder::new("viz");
    let mut session = session(&[("mode", "caching")]);
    ok(&mut session, "let x = ones([1024, 1024]);");
    ok(&mut session, "for n in 1..40 { let y = zeros([n, 5000]); y.sum(); }");
    fails(&mut session, "zeros([1024, 1024, 1024])", "OOM");
    let file = folder.path("a b.pickle");
    ok(&mut session, &format!("%export viz {file}"));
    let devices = torch::read(&std::fs::read(&file).expect("a file")).expect("a snapshot");
    let found = torch::predict(&devices[0], torch::options_of(&devices[0]));
    assert!(found.allocs > 70, "{found:?}");
    assert_eq!((found.right, found.strays), (found.allocs, 0));
    let oom = devices[0].events.iter().filter(|event| event.action == torch::Action::Oom);
    assert_eq!(oom.count(), 1);
}

#[test]
fn a_file_is_replaced_with_a_word_and_only_by_a_whole_one() {
    let folder = Folder::new("replace");
    let mut session = session(&[]);
    ok(&mut session, "let x = ones([4]);");
    let file = folder.path("events.csv");
    assert!(!ok(&mut session, &format!("%export csv {file}")).contains("replaced"));
    assert!(ok(&mut session, &format!("%export perfetto {file}")).contains("is replaced"));
    assert!(std::fs::read_to_string(&file).expect("text").starts_with('{'));
    // A link stays a link.
    let link = folder.path("link");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    ok(&mut session, &format!("%export csv {link}"));
    assert!(std::fs::symlink_metadata(&link).expect("a link").is_symlink());
    assert!(std::fs::read_to_string(&file).expect("text").starts_with("index,"));
    ok(&mut session, "%export csv /dev/null");
    let left: Vec<_> = std::fs::read_dir(&folder.0).expect("a folder").collect();
    assert_eq!(left.len(), 2, "no part of a file is left: {left:?}");
}

#[test]
fn wrong_exports_say_what_to_write() {
    let folder = Folder::new("wrong");
    let mut session = session(&[]);
    for (cell, words) in [
        ("%export".to_string(), "write %export FORMAT FILE"),
        ("%export pprof".to_string(), "%export pprof session.pb.gz"),
        ("%export profile x".to_string(), "there are pprof, viz, perfetto, csv, trace"),
        ("%export perfeto x".to_string(), "did you mean `perfetto`?"),
        (format!("%export csv {}", folder.path("no/such/folder")), "there is no such folder"),
        (format!("%export csv {}", folder.path("")), "is a folder; name a file in it"),
        ("%export csv /dev/full".to_string(), "/dev/full: "),
    ] {
        let text = fails(&mut session, &cell, "command");
        assert!(text.contains(words), "{cell}\n{text}");
    }
    // A wrong format is said before anything of the cell runs.
    fails(&mut session, "let z = 1;\n%export nothing x", "command");
    fails(&mut session, "z", "E0425");
}
