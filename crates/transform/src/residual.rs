//! What a gradient keeps from its forward, and why.

use crate::joint::{Exchange, Joint};
use crate::split::{Cut, definitions};
use vramlab_ir::{Eqn, Func, Origin, Stage, Type, Value};

/// One value that lives from forward to backward.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The value in the joint program.
    pub value: Value,
    pub ty: Type,
    /// Position among the program's parameters, when it is one.
    pub param: Option<usize>,
    /// The op that made it; `argument` for parameters. Of a copy in host memory the op that made what
    /// was copied.
    pub op: &'static str,
    /// Where the user wrote that op.
    pub origin: Option<Origin>,
    /// Whose gradients read it: the op and its place, each once.
    pub wanted_by: Vec<(&'static str, Option<Origin>)>,
}

/// In order of their making, parameters first.
pub fn residuals(joint: &Joint) -> Vec<Residual> {
    let func = &joint.func;
    let cut = Cut::new(joint);
    let by = definitions(func);
    let mut kept = cut.kept.clone();
    kept.sort_by_key(|value| (by[value.index()], *value));
    kept.into_iter()
        .map(|value| {
            let made = maker(func, &by, value);
            Residual {
                value,
                ty: func.ty(value).clone(),
                param: func.params.iter().position(|&param| param == value),
                op: made.map_or("argument", |eqn| eqn.op.name()),
                origin: made.and_then(|eqn| eqn.origin),
                wanted_by: wanted_by(joint, &cut, value),
            }
        })
        .collect()
}

/// The equation that made a value, or what it is a copy of.
fn maker<'f>(func: &'f Func, by: &[Option<usize>], value: Value) -> Option<&'f Eqn> {
    let eqn = &func.eqns[by[value.index()]?];
    match func.ty(value).is_host() {
        true => maker(func, by, eqn.inputs[0]).or(Some(eqn)),
        false => Some(eqn),
    }
}

/// Through what the backward repeats of the forward, such as views.
fn wanted_by(joint: &Joint, cut: &Cut, value: Value) -> Vec<(&'static str, Option<Origin>)> {
    let func = &joint.func;
    let mut same = vec![false; func.types.len()];
    same[value.index()] = true;
    let mut wanted: Vec<(&'static str, Option<Origin>)> = Vec::new();
    for (at, eqn) in func.eqns.iter().enumerate().filter(|(at, _)| cut.after[*at]) {
        if !eqn.inputs.iter().any(|input| same[input.index()]) {
            continue;
        }
        let mark = joint.marks[at];
        if mark.stage == Stage::Forward {
            eqn.outputs.iter().for_each(|output| same[output.index()] = true);
        } else if !wanted.contains(&(mark.of, mark.origin)) {
            wanted.push((mark.of, mark.origin));
        }
    }
    if wanted.is_empty() {
        wanted.push(("result", None));
    }
    wanted
}

/// The list as a table. Of the parameters, the first `arguments` are the function's own; others are
/// arrays that it captured. Places are named for who reads them in `cell`.
pub fn residual_table(joint: &Joint, arguments: usize, cell: u32) -> String {
    let rows: Vec<[String; 4]> =
        residuals(joint).iter().map(|residual| row(joint, residual, arguments, cell)).collect();
    let mut text = total(joint, arguments);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..3).map(|column| width(column).unwrap_or(0)).collect();
    for [ty, bytes, made, wanted] in &rows {
        let (a, b, c) = (widths[0], widths[1], widths[2]);
        text.push_str(&format!("  {ty:<a$}  {bytes:>b$}  {made:<c$}  {wanted}\n"));
    }
    text + &idle_checkpoints(joint, cell)
}

/// Checkpoints that keep at their boundary as much as they drop.
fn idle_checkpoints(joint: &Joint, cell: u32) -> String {
    let mut groups: Vec<(Exchange, usize)> = Vec::new();
    for exchange in joint.exchanges.iter().filter(|e| e.kept >= e.dropped) {
        match groups.iter_mut().find(|(known, _)| known == exchange) {
            Some((_, times)) => *times += 1,
            None => groups.push((*exchange, 1)),
        }
    }
    let line = |(exchange, times): &(Exchange, usize)| {
        let times = if *times == 1 { String::new() } else { format!(" ({times} times)") };
        format!(
            "{}{times}: no gain, since what it keeps at its boundary ({}) is as large as what it \
             drops ({}); take more into one checkpoint\n",
            place("checkpoint", exchange.origin, cell),
            size(exchange.kept),
            size(exchange.dropped)
        )
    };
    groups.iter().map(line).collect()
}

/// Arguments are there anyway: what is made and kept is what a gradient costs in memory.
fn total(joint: &Joint, arguments: usize) -> String {
    let all = residuals(joint);
    let made: Vec<&Residual> = all.iter().filter(|residual| residual.param.is_none()).collect();
    let (offloaded, held): (Vec<&Residual>, Vec<&Residual>) =
        made.iter().copied().partition(|residual| residual.ty.is_host());
    let sum = |of: &[&Residual]| -> String {
        let bytes = size(of.iter().map(|residual| residual.ty.bytes()).sum());
        let plural = if of.len() == 1 { "" } else { "s" };
        format!("{bytes} in {} value{plural}", of.len())
    };
    let given = all.iter().filter(|residual| residual.param.is_some_and(|at| at < arguments));
    let (given, kept) = (given.count(), all.len() - made.len());
    let there = match (given, kept - given) {
        (0, 0) => String::new(),
        (1, 0) => ", and one argument, which is there anyway".to_string(),
        (n, 0) => format!(", and {n} arguments, which are there anyway"),
        (0, 1) => ", and one captured array, which is there anyway".to_string(),
        (0, n) => format!(", and {n} captured arrays, which are there anyway"),
        (n, m) => format!(", and {} arguments or captured arrays, which are there anyway", n + m),
    };
    let offloaded = match offloaded.is_empty() {
        true => String::new(),
        false => format!(", {} offloaded to pinned_host", sum(&offloaded)),
    };
    format!("kept for the backward pass: {}{offloaded}{there}\n", sum(&held))
}

fn row(joint: &Joint, residual: &Residual, arguments: usize, cell: u32) -> [String; 4] {
    let made = match residual.param {
        Some(at) if at < arguments => joint.func.arg_name(at),
        Some(_) => "captured".to_string(),
        None => place(residual.op, residual.origin, cell),
    };
    let wanted: Vec<String> =
        residual.wanted_by.iter().map(|(op, origin)| place(op, *origin, cell)).collect();
    let wanted = match wanted.as_slice() {
        [one] if one == "checkpoint" => "where recomputation starts".to_string(),
        wanted => format!("for the gradient of {}", wanted.join("; ")),
    };
    let wanted = match residual.ty.is_host() {
        true => format!("offloaded to pinned_host, {wanted}"),
        false => wanted,
    };
    [residual.ty.to_string(), size(residual.ty.bytes()), made, wanted]
}

fn place(op: &str, origin: Option<Origin>, cell: u32) -> String {
    match origin {
        Some(origin) => format!("{op}, {}", origin.seen_from(cell)),
        None => op.to_string(),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1048576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1048576.0),
    }
}
