//! Parity: the same cells through rustc and through the instant tier.
//!
//! `tiers/right/*.rs` are cells (percent format) that must print the same on both sides, values
//! included. rustc's side is one program generated over `crates/array` with the in-process engine.
//! `tiers/wrong/*.rs` are files whose last cell both must refuse under the code of the header
//! `// expect: E0382` (`none`: an error without a code). A right file headed `// faults` ends in a cell that fails while it runs.

mod corpus;
mod instant;
mod program;
mod random;
mod random_types;
mod rustc;

use corpus::Source;

fn report(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{} {what}:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn the_corpus_is_as_large_as_promised() {
    let right: usize = corpus::right().iter().map(|source| source.cells.len()).sum();
    let wrong = corpus::wrong().len();
    assert!(right >= 150 && wrong >= 60, "{right} right cells, {wrong} wrong files");
}

#[test]
fn right_cells_run_under_rustc() {
    let outputs = rustc::run("right", &corpus::right()).unwrap_or_else(|error| panic!("{error}"));
    let wrong: Vec<String> = corpus::right()
        .iter()
        .filter_map(|source| match (&outputs[&source.name].fault, source.faults) {
            (Some(fault), false) => Some(format!("{}: {fault}", source.name)),
            (None, true) => Some(format!("{}: headed `faults`, and none came", source.name)),
            _ => None,
        })
        .collect();
    report("right files end otherwise than they say", &wrong);
}

#[test]
fn wrong_cells_are_refused_by_rustc_under_their_code() {
    let sources = corpus::wrong();
    let check = |source: &Source| -> Option<String> {
        let expected = &source.expect;
        match rustc::codes(source) {
            Ok(codes) if codes == *expected => None,
            Ok(codes) => {
                Some(format!("{}: expected {expected:?}, rustc has {codes:?}", source.name))
            }
            Err(error) => Some(format!("{}: {error}", source.name)),
        }
    };
    report("wrong files get another code", &in_parallel(&sources, check));
}

#[test]
fn right_cells_print_the_same_in_the_instant_tier() {
    let outputs = rustc::run("right", &corpus::right()).unwrap_or_else(|error| panic!("{error}"));
    let differs = |source: &Source| -> Option<String> {
        let (rustc, instant) = (&outputs[&source.name], instant::run(source));
        (*rustc != instant).then(|| format!("{}: {}", source.name, difference(rustc, &instant)))
    };
    report("right files print something else", &in_parallel(&corpus::right(), differs));
}

/// The first line that differs, with both sides.
fn difference(rustc: &rustc::Output, instant: &rustc::Output) -> String {
    let lines = |output: &rustc::Output| -> Vec<String> {
        let fault = output.fault.iter().map(|fault| format!("fault: {fault}"));
        output.text.lines().map(str::to_string).chain(fault).collect()
    };
    let (rustc, instant) = (lines(rustc), lines(instant));
    let at = (0..).find(|&at| rustc.get(at) != instant.get(at)).expect("they differ");
    let line = |lines: &[String]| lines.get(at).cloned().unwrap_or("nothing".to_string());
    format!("line {}\n  rustc:   {}\n  instant: {}", at + 1, line(&rustc), line(&instant))
}

#[test]
fn wrong_cells_are_refused_by_the_instant_tier_under_their_code() {
    let check = |source: &Source| -> Option<String> {
        instant::refuse(source).err().map(|why| format!("{}: {why}", source.name))
    };
    report("wrong files are not refused as rustc does", &in_parallel(&corpus::wrong(), check));
}

#[test]
fn random_owners_are_judged_alike_and_print_the_same() {
    compare("owners", (0..random_bodies()).map(random::body).collect());
}

#[test]
fn random_structs_are_judged_alike_and_print_the_same() {
    compare("structs", (0..random_bodies()).map(random::body_with_structs).collect());
}

#[test]
fn random_types_are_judged_alike_and_print_the_same() {
    compare("types", (0..random_bodies()).map(random_types::body).collect());
}

fn compare(name: &str, bodies: Vec<Source>) {
    let judged = rustc::codes_of_all(name, &bodies).unwrap_or_else(|error| panic!("{error}"));
    let accepted: Vec<Source> = bodies
        .iter()
        .zip(&judged)
        .filter(|(_, codes)| codes.is_empty())
        .map(|(body, _)| body.clone())
        .collect();
    let printed =
        rustc::run(&format!("{name}_run"), &accepted).unwrap_or_else(|error| panic!("{error}"));
    let expected: Vec<Source> = bodies
        .into_iter()
        .zip(judged)
        .map(|(body, codes)| Source { expect: codes, ..body })
        .collect();
    let differs = |body: &Source| -> Option<String> {
        let why = match printed.get(&body.name) {
            Some(rustc) => {
                let instant = instant::run(body);
                (*rustc != instant).then(|| difference(rustc, &instant))
            }
            None => instant::refuse_one_of_many(body).err(),
        };
        why.map(|why| format!("{}: {why}\n{}", body.name, body.cells[0]))
    };
    report("random bodies are judged otherwise", &in_parallel(&expected, differs));
}

/// More than the usual number by `VRAMLAB_RANDOM_BODIES`, for a longer search.
fn random_bodies() -> u64 {
    let wanted = std::env::var("VRAMLAB_RANDOM_BODIES").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// Two at a time: rustc runs are processes, and this is one test of many.
fn in_parallel(
    sources: &[Source],
    check: impl Fn(&Source) -> Option<String> + Sync,
) -> Vec<String> {
    let check = &check;
    std::thread::scope(|scope| {
        let halves = sources.chunks(sources.len().div_ceil(2).max(1));
        let handles: Vec<_> = halves
            .map(|half| scope.spawn(move || half.iter().filter_map(check).collect::<Vec<_>>()))
            .collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("no panic inside")).collect()
    })
}
