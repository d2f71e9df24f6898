//! What is kept, and how it goes: `%caches`, `%clear`, `%explain`.

use super::{Command, Completing, Effect, Refusal};
use crate::event::Table;
use crate::report::{duration, mib, mib_short, size};
use crate::rewrite::out_name;
use crate::session::Session;
use crate::sink::Sink;
use vramlab_array::ir::{CompileKind, Engine, Explanation};
use vramlab_memory::{nearest, parse_bytes};
use vramlab_runtime::{CacheEntry, CacheSelection, Cleared, TrimReport};

pub static COMMANDS: &[Command] = &[
    Command {
        name: "caches",
        arguments: "[why NAME]",
        help: "The compile cache, entry by entry, or what made a function compile again.",
        example: "%caches",
        complete: Completing::Clearable,
        action: caches,
        ..Command::BASE
    },
    Command {
        name: "clear",
        arguments: "[NAME | older=10s | under=1MiB | caches | pool | outputs | all]",
        help: "Says what each target would free, or frees it and says exactly what went.",
        example: "%clear pool",
        complete: Completing::Clearable,
        changes_names: true,
        action: clear,
        ..Command::BASE
    },
    Command {
        name: "explain",
        arguments: "NAME [STAGE]",
        help: "The stages of a jitted function: trace, passes, fusions, plan; planned against measured.",
        example: "%explain f",
        complete: Completing::Clearable,
        action: explain,
        ..Command::BASE
    },
];

fn caches(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let (word, name) = crate::parts::cut_word(arguments);
    match word {
        "" => {}
        "why" => return caches_why(session, name, sink),
        _ => {
            let message = format!("%caches takes nothing, or why NAME, so no `{arguments}`");
            return Err(Refusal::new(message));
        }
    }
    let entries = session.context.caches();
    let counts = session.context.compile_counts();
    let mut table = Table::new(&[
        "function",
        "kind",
        "shapes",
        ">hits",
        ">compile",
        ">code",
        ">constants",
        ">idle",
    ]);
    for entry in entries.iter().take(MOST_ENTRIES) {
        table.row([
            entry.names.join(", "),
            kind(entry).into(),
            entry.signature.clone(),
            entry.hits.to_string(),
            duration(entry.compile_ns),
            mib(entry.code_bytes),
            mib(entry.constant_bytes),
            duration(entry.idle_ns),
        ]);
    }
    if entries.len() > MOST_ENTRIES {
        table.note(format!("{} more entries", entries.len() - MOST_ENTRIES));
    }
    table.note(format!(
        "{} entries, {} bytes   jit: {} hits, {} misses, {}   eager: {} hits, {} misses   evicted {}",
        counts.entries,
        counts.bytes,
        counts.jit.hits,
        counts.jit.misses,
        duration(counts.jit.compile_ns),
        counts.eager.hits,
        counts.eager.misses,
        counts.evicted
    ));
    sink.table(table);
    Ok(Effect::Told)
}

/// What changed from each entry of a function to the next one.
fn caches_why(session: &Session, name: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    if name.is_empty() {
        let help = known_functions(&function_names(session));
        return Err(Refusal::new("why which function? write %caches why f").help(help));
    }
    let entries = entries_of(session, name)?;
    sink.say(format!("{name}: {} entries", entries.len()));
    sink.say(format!("1  {}   compiled first", entries[0].signature));
    let mut numbers = false;
    for (index, entry) in entries.iter().enumerate().skip(1).take(MOST_ENTRIES) {
        let (from, differences) = nearest_entry(session, &entries[..index], entry);
        numbers |= differences.iter().any(|line| line.starts_with("a captured number"));
        let from = if from + 1 == index { String::new() } else { format!("from {}: ", from + 1) };
        sink.say(format!("{}  {}   {from}{}", index + 1, entry.signature, differences.join("; ")));
    }
    if entries.len() > MOST_ENTRIES + 1 {
        sink.say(format!("{} more entries", entries.len() - MOST_ENTRIES - 1));
    }
    if numbers {
        sink.say(
            "a number that changes often is an argument: full((), 0.1) is an array of one element",
        );
    }
    Ok(Effect::Told)
}

/// The earlier entry with the fewest differences, the latest of equals, and the differences.
fn nearest_entry(
    session: &Session,
    earlier: &[CacheEntry],
    entry: &CacheEntry,
) -> (usize, Vec<String>) {
    let of = |(index, other): (usize, &CacheEntry)| {
        let found = session.context.cache_differences(other.executable, entry.executable);
        (index, found.unwrap_or_default())
    };
    let all = earlier.iter().enumerate().rev().map(of);
    all.min_by_key(|(_, differences)| differences.len()).unwrap_or_default()
}

/// The entries of a function in the order of their making; at least one.
fn entries_of(session: &Session, name: &str) -> Result<Vec<CacheEntry>, Refusal> {
    let mut found = session.context.caches();
    found.retain(|entry| entry.names.iter().any(|known| known == name));
    if !found.is_empty() {
        return Ok(found);
    }
    let names = function_names(session);
    let near = nearest(name, names.iter().map(String::as_str))
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let variables = session.interpreter.variables();
    let jitted = variables.iter().any(|v| v.name == name && v.ty.starts_with("Jit"));
    let first = match jitted {
        true => "call it first: a call that was refused compiled nothing",
        false => "functions of `jit` are compiled when they are called",
    };
    Err(Refusal::new(format!("`{name}` was never compiled{near}"))
        .help(format!("{first}; {}", known_functions(&names))))
}

const MOST_ENTRIES: usize = 60;

fn kind(entry: &CacheEntry) -> &'static str {
    match entry.kind {
        CompileKind::Jit => "jit",
        CompileKind::Eager => "eager",
    }
}

fn clear(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    match arguments {
        "" => sink.table(would_free(session)),
        "caches" => clear_caches(session, &CacheSelection::All, sink),
        "pool" => clear_pool(session, sink),
        "outputs" => clear_outputs(session, sink),
        "all" => {
            clear_outputs(session, sink);
            clear_caches(session, &CacheSelection::All, sink);
            clear_pool(session, sink);
        }
        name => {
            let selection = selection(session, name)?;
            clear_caches(session, &selection, sink);
        }
    }
    Ok(Effect::Told)
}

/// `older=10s`, `under=1MiB`, or a function.
fn selection(session: &Session, text: &str) -> Result<CacheSelection, Refusal> {
    if let Some(time) = text.strip_prefix("older=") {
        return parse_age(time).map(CacheSelection::OlderThan);
    }
    if let Some(size) = text.strip_prefix("under=") {
        return Ok(CacheSelection::UntilUnder(parse_bytes(size)?));
    }
    let names = function_names(session);
    if names.iter().any(|name| name == text) {
        return Ok(CacheSelection::Named(text.to_string()));
    }
    let targets = ["caches", "pool", "outputs", "all"];
    let known: Vec<&str> = targets.into_iter().chain(names.iter().map(String::as_str)).collect();
    let near = nearest(text, known.iter().copied())
        .map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
    Err(Refusal::new(format!(
        "nothing to clear is called `{text}`{near}; there are {}, older=10s, under=1MiB",
        known.join(", ")
    )))
}

fn parse_age(text: &str) -> Result<u64, Refusal> {
    let units = [("ms", 1e6), ("s", 1e9), ("min", 6e10), ("m", 6e10), ("h", 3.6e12)];
    let found = units.iter().find_map(|(name, scale)| {
        let value: f64 = text.strip_suffix(name)?.trim().parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some((value * scale) as u64)
    });
    found.ok_or_else(|| Refusal::new(format!("`{text}` is no time: write 500ms, 10s, 5min or 1h")))
}

/// Functions with entries, jitted ones first.
pub(crate) fn function_names(session: &Session) -> Vec<String> {
    let mut entries = session.context.caches();
    entries.sort_by_key(|entry| entry.kind != CompileKind::Jit);
    let mut names: Vec<String> = Vec::new();
    for name in entries.into_iter().flat_map(|entry| entry.names) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn would_free(session: &Session) -> Table {
    let mut table = Table::new(&["target", "would free", ""]);
    let all = session.context.would_clear(&CacheSelection::All);
    let (bytes, count) = output_bytes(session);
    let trim = session.context.trimmable_bytes();
    table.row([
        "caches".to_string(),
        format!("{} bytes of host memory", all.bytes),
        format!("{} entries; they compile again when called", all.entries),
    ]);
    table.row([
        "pool".to_string(),
        format!("{} of the pool", size(trim)),
        "regions without a live block go back to the device".into(),
    ]);
    table.row([
        "outputs".to_string(),
        format!("{} of arrays", size(bytes)),
        format!("{count} values kept as Out[n]"),
    ]);
    let jitted = session.context.caches().into_iter().filter(|e| e.kind == CompileKind::Jit);
    let mut names: Vec<String> = jitted.flat_map(|entry| entry.names).collect();
    names.sort();
    names.dedup();
    for name in names {
        let cleared = session.context.would_clear(&CacheSelection::Named(name.clone()));
        table.row([
            name,
            format!("{} bytes of host memory", cleared.bytes),
            format!("{} entries", cleared.entries),
        ]);
    }
    table
}

/// Bytes that only outputs hold, and how many outputs there are.
fn output_bytes(session: &Session) -> (u64, usize) {
    let only_out = |holders: &[String]| holders.iter().all(|holder| holder.starts_with("Out["));
    let buffers = session.context.buffers().into_iter();
    let bytes =
        buffers.filter(|buffer| only_out(&buffer.holders)).map(|buffer| buffer.requested).sum();
    (bytes, session.outputs().len())
}

fn clear_caches(session: &Session, selection: &CacheSelection, sink: &mut Sink) {
    let cleared: Cleared = session.context.clear(selection);
    let names: Vec<String> = cleared
        .names
        .iter()
        .map(|(name, count)| if *count == 1 { name.clone() } else { format!("{name} ×{count}") })
        .collect();
    let left = session.context.compile_counts();
    sink.say(format!(
        "caches: {} entries, {} bytes gone{}; {} entries, {} bytes left; arrays untouched",
        cleared.entries,
        cleared.bytes,
        if names.is_empty() { String::new() } else { format!(" ({})", short_list(&names)) },
        left.entries,
        left.bytes
    ));
}

fn short_list(names: &[String]) -> String {
    match names.len() {
        0..=8 => names.join(", "),
        many => format!("{}, … {} more", names[..8].join(", "), many - 8),
    }
}

fn clear_pool(session: &Session, sink: &mut Sink) {
    let report: TrimReport = session.context.trim();
    sink.say(format!(
        "pool: {} regions, {} returned; {} kept",
        report.released_regions,
        size(report.released_bytes),
        size(report.kept_bytes)
    ));
    for region in &report.kept {
        sink.say(format!(
            "  kept {} at {:#x}: {} in use, pinned by {}",
            mib_short(region.bytes),
            region.base,
            mib(region.bytes_in_use),
            short_list(&region.owners)
        ));
    }
}

fn clear_outputs(session: &mut Session, sink: &mut Sink) {
    let before = session.context.report().figures.requested_bytes;
    let outputs = session.outputs();
    for (number, _) in &outputs {
        session.interpreter.remove(&out_name(*number));
    }
    session.last_output = None;
    let after = session.context.report().figures.requested_bytes;
    sink.say(format!(
        "outputs: {} values gone, {} of arrays freed",
        outputs.len(),
        size(before.saturating_sub(after))
    ));
}

fn explain(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let (name, stage) = crate::parts::cut_word(arguments);
    let names = function_names(session);
    if name.is_empty() {
        return Err(Refusal::new("explain what? write %explain f").help(known_functions(&names)));
    }
    let found = entries_of(session, name)?;
    let entry = found.iter().max_by_key(|entry| entry.last_use_ns).expect("there is one");
    let Some(explanation) = session.context.explain(entry.executable) else {
        return Err(Refusal::new(format!("`{name}` has left the compile cache; call it again")));
    };
    sink.say(summary(name, &explanation, entry));
    if let Some(line) = moved_instead(session, name, entry, &explanation) {
        sink.say(line);
    }
    stages(&explanation, stage, sink)?;
    if found.len() > 1 {
        sink.say(format!(
            "shown for {}, called last; {} shapes are cached",
            entry.signature,
            found.len()
        ));
    }
    Ok(Effect::Told)
}

/// `move x instead, f.call((x,)): peak 64.0, because the result takes x's buffer`, where a call with its arguments moved
/// in peaks lower.
fn moved_instead(
    session: &Session,
    name: &str,
    entry: &CacheEntry,
    now: &Explanation,
) -> Option<String> {
    let function = session.variables().into_iter().find(|variable| variable.name == name)?;
    let arity =
        function.ty.strip_prefix("Jit<")?.split(',').next()?.trim().parse::<usize>().ok()?;
    let plan = session.context.if_moved(entry.executable, arity)?;
    let moved: Vec<&vramlab_array::ir::kernel::Donation> = plan.used.iter().collect();
    let new = moved.iter().any(|donation| !entry.donated.contains(&donation.argument));
    if !new || plan.peak_bytes >= now.analysis.peak_memory_in_bytes {
        return None;
    }
    let names = parameters(session, name, arity);
    let is_moved = |index: usize| moved.iter().any(|donation| donation.argument as usize == index);
    let call = |(index, name): (usize, &String)| match is_moved(index) {
        true => name.clone(),
        false => format!("&{name}"),
    };
    let arguments: Vec<String> = names.iter().enumerate().map(call).collect();
    let comma = if arity == 1 { "," } else { "" };
    let reasons: Vec<String> = moved
        .iter()
        .map(|donation| {
            let name = &names[donation.argument as usize];
            let taker = donation.reason.strip_prefix("aliases ").unwrap_or("a temporary");
            let taker = if taker == "result 0" { "the result" } else { taker };
            format!("{taker} takes {name}'s buffer")
        })
        .collect();
    let moved: Vec<&str> =
        moved.iter().map(|donation| names[donation.argument as usize].as_str()).collect();
    Some(format!(
        "move {} instead, {name}.call(({}{comma})): peak {}, because {}",
        moved.join(", "),
        arguments.join(", "),
        mib(plan.peak_bytes),
        reasons.join(", ")
    ))
}

/// The names of a jitted function's parameters, from the pattern in the cell that wrote it, else `a0`, `a1`, …
fn parameters(session: &Session, name: &str, arity: usize) -> Vec<String> {
    let written = |source: &str| {
        let (_, rest) = source.split_once(&format!("let {name} "))?;
        let (_, rest) = rest.split_once("jit(")?;
        let head = match rest.find('[') {
            Some(at) if rest[..at].contains('|') && !rest[..at].contains(')') => &rest[at + 1..],
            _ => {
                let item: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let (_, _, source) =
                    session.interpreter.functions().into_iter().find(|(n, ..)| *n == item)?;
                return names_in(source.split_once("([")?.1, arity);
            }
        };
        names_in(head, arity)
    };
    let found = session.past.iter().rev().find_map(|past| written(&past.source));
    let found = found.or_else(|| written(&session.running.source));
    found.unwrap_or_else(|| (0..arity).map(|index| format!("a{index}")).collect())
}

/// `x, w]| …` → x, w, when these are as many as the function takes.
fn names_in(text: &str, arity: usize) -> Option<Vec<String>> {
    let list = text.split_once(']')?.0;
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_string()).collect();
    let plain =
        |name: &String| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (names.len() == arity && names.iter().all(plain)).then_some(names)
}

fn known_functions(names: &[String]) -> String {
    match names.is_empty() {
        true => "nothing has been compiled yet".into(),
        false => format!("compiled are {}", short_list(names)),
    }
}

/// `7 ops → 1 loop; 384.0 never stored; temp 0.0`, and the plan beside what was measured.
fn summary(name: &str, explanation: &Explanation, entry: &CacheEntry) -> String {
    let analysis = &explanation.analysis;
    let plural = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    let mut text = format!(
        "{}   {}\n{} → {}; {} of intermediates never stored; temp {}",
        name,
        entry.signature,
        plural(explanation.ops, "op", "ops"),
        plural(explanation.kernels, "kernel", "kernels"),
        mib(explanation.fused_bytes),
        mib(analysis.temp_size_in_bytes)
    );
    text.push_str(&format!(
        "\narguments {}   outputs {}   aliased {}   host scratch {}   code {} bytes",
        mib(analysis.argument_size_in_bytes),
        mib(analysis.output_size_in_bytes),
        mib(analysis.alias_size_in_bytes),
        mib(analysis.host_scratch_bytes),
        analysis.generated_code_size_in_bytes
    ));
    if analysis.host_temp_size_in_bytes > 0 {
        let host = mib(analysis.host_temp_size_in_bytes);
        text.push_str(&format!("\noffloaded to host {host} in pinned_host, beside the peak"));
    }
    let planned = analysis.peak_memory_in_bytes;
    text.push_str(&match explanation.measured_peak_bytes {
        Some(measured) if measured == planned => {
            format!("\npeak {} planned = measured ({planned} bytes)", mib(planned))
        }
        Some(measured) => {
            format!("\npeak {} planned, {} measured", mib(planned), mib(measured))
        }
        None => format!("\npeak {} planned, not run yet", mib(planned)),
    });
    for note in &explanation.notes {
        text.push_str(&format!("\n{note}"));
    }
    for donation in &explanation.donations {
        text.push_str(&format!("\n{}", donation_line(explanation, donation)));
    }
    text
}

fn donation_line(
    explanation: &Explanation,
    donation: &vramlab_array::ir::kernel::Donation,
) -> String {
    let verb = if donation.used { "donated" } else { "not reused" };
    format!("{} {verb}: {}", explanation.arg_name(donation.argument), donation.reason)
}

/// All stages, or the one asked for.
fn stages(explanation: &Explanation, asked: &str, sink: &mut Sink) -> Result<(), Refusal> {
    let names: Vec<&str> = explanation.stages.iter().map(|(name, _)| name.as_str()).collect();
    if !asked.is_empty() && !names.contains(&asked) {
        return Err(Refusal::new(crate::config::unknown("stage", asked, names.iter().copied())));
    }
    for (name, text) in explanation.stages.iter().filter(|(n, _)| asked.is_empty() || n == asked) {
        sink.say(format!("── {name}"));
        sink.line(text.trim_end());
    }
    Ok(())
}
