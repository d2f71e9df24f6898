//! Where the values that calls take were moved from: a failed call gives arrays back.

use super::*;

/// The parts of a slot's value, each with the place that it was moved from.
type Sources = HashMap<Slot, Vec<(Vec<u32>, Place)>>;

/// Where the values that calls take were moved from, through temporaries: a failed call gives
/// arrays back to their variables.
pub(super) fn restores(insts: &[Inst]) -> HashMap<usize, Vec<Restore>> {
    let mut sources = Sources::new();
    let mut out = HashMap::new();
    for (at, inst) in insts.iter().enumerate() {
        match inst {
            Inst::Set { place: to, value: Operand::Move(from) } if to.steps.is_empty() => {
                let known = origin(from, &sources);
                sources.insert(to.slot, known);
            }
            Inst::Tuple { dest, parts }
            | Inst::List { dest, parts }
            | Inst::Struct { dest, parts, .. } => {
                let mut known = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    let Operand::Move(from) = part else { continue };
                    for (path, place) in origin(from, &sources) {
                        let path = std::iter::once(index as u32).chain(path).collect();
                        known.push((path, place));
                    }
                }
                sources.insert(*dest, known);
            }
            Inst::Call { args, .. }
            | Inst::CallValue { args, .. }
            | Inst::CallLibrary { args, .. }
            | Inst::CallSurface { args, .. } => {
                let args: Vec<&Operand> = args.iter().collect();
                remember(at, &args, &sources, &mut out);
            }
            Inst::ArrayBinary { left, right, .. } => {
                remember(at, &[left, right], &sources, &mut out);
            }
            _ => {}
        }
    }
    out
}

fn origin(place: &Place, sources: &Sources) -> Vec<(Vec<u32>, Place)> {
    match sources.get(&place.slot) {
        Some(known) if place.steps.is_empty() => known.clone(),
        _ => vec![(Vec::new(), place.clone())],
    }
}

fn remember(
    at: usize,
    args: &[&Operand],
    sources: &Sources,
    out: &mut HashMap<usize, Vec<Restore>>,
) {
    for (index, arg) in args.iter().enumerate() {
        let Operand::Move(from) = arg else { continue };
        for (path, place) in origin(from, sources) {
            out.entry(at).or_default().push(Restore { argument: index, path, place });
        }
    }
}
