//! What a kind of error means, beyond the one error at hand, and the usual way out. The codes are rustc's where it has one.

/// Kind and the sentence.
static REASONS: &[(&str, &str)] = &[
    (
        "E0277",
        "the value's type lacks what the operation asks for; `as` converts numbers, `&` borrows arrays",
    ),
    ("E0282", "nothing says which type is meant; write it: `let v: Vec<Array> = …`"),
    (
        "E0308",
        "two types meet that must be the same; numbers are converted by `as` and not by themselves",
    ),
    ("E0369", "this operator is not defined for these types"),
    (
        "E0373",
        "the function outlives the cell that wrote it, so it must own what it names: write `move |…|`",
    ),
    ("E0381", "on some path the variable is read before it has a value"),
    (
        "E0382",
        "a value that is passed without `&` moves: its memory may be used again at once, and the name is empty \
         afterwards. Pass `&x` to keep it; `x.clone()` shares the buffer, `x.copy()` makes another",
    ),
    ("E0384", "a variable changes only if it was made with `let mut`"),
    ("E0423", "this name is not a value"),
    ("E0425", "no such name in this session; %who lists those there are"),
    ("E0433", "no such path in the prelude"),
    ("E0499", "one place is borrowed mutably twice at a time"),
    ("E0502", "a place is changed while something still borrows it"),
    ("E0505", "a value moves while something still borrows it; let the borrow end first"),
    (
        "E0507",
        "a value behind a reference stays where it is; `clone()` it, or move the whole container",
    ),
    ("E0515", "a reference to what ends here cannot leave; return the value itself"),
    ("E0596", "to change it, borrow it mutably: `let mut`, `&mut`"),
    ("E0597", "a reference would outlive what it refers to"),
    ("E0599", "the type has no such method; Tab after the dot lists them"),
    ("E0061", "another number of arguments than the function takes; `?name` shows its signature"),
    ("syntax", "this is no Rust yet; nothing of the cell ran"),
    (
        "unsupported",
        "right or wrong, this is outside of the Rust that runs here; nothing of the cell ran",
    ),
    (
        "shape",
        "elementwise, shapes are equal or of length 1 where they differ, counted from the last axis; \
         a product joins inner lengths that are equal; a reshape keeps the number of elements",
    ),
    ("dtype", "this op does not take these element types; `x.astype(F32)` converts"),
    ("argument", "an argument lies outside of what the op takes; nothing was allocated for it"),
    ("no-data", "the dry device carries shapes and no data, so there is nothing to read"),
    ("donated", "the buffer was given to a function that used it for its result"),
    ("panic", "the code of the cell stopped itself; what ran before it stays"),
    ("interrupted", "the cell was asked to stop; what ran before stays"),
    (
        "trace",
        "a jitted function is run once without data, to record its ops: it cannot read a value (`item`, `if x > 0`)",
    ),
    ("expect", "the cell ran, and its figures are not what %expect asked for"),
    ("command", "the command did nothing: the session is as it was; %help lists the commands"),
    ("internal", "a fault of vramlab itself; the session goes on"),
];

/// The sentence for a kind of error, if there is more to say than the error does.
pub fn of(kind: &str) -> Option<&'static str> {
    REASONS.iter().find(|(known, _)| *known == kind).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramlab_array::ir::FaultKind;

    #[test]
    fn every_kind_of_fault_that_a_user_meets_has_a_reason() {
        let kinds = [
            FaultKind::Shape,
            FaultKind::DType,
            FaultKind::Argument,
            FaultKind::NoData,
            FaultKind::Donated,
            FaultKind::Panic,
            FaultKind::Interrupted,
            FaultKind::Trace,
        ];
        assert!(kinds.iter().all(|kind| of(kind.code()).is_some()));
        assert_eq!(of("no such kind"), None);
    }
}
