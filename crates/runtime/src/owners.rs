//! Names of holders, as users read them, and as the ledger keeps them.

use crate::buffers::Claim;
use vramlab_ir::Origin;
use vramlab_memory::Owner;

/// What the ledger calls a holder of that name.
pub(crate) fn parse(name: &str) -> Owner {
    if let Some(cell) = name.strip_prefix("Out[").and_then(|rest| rest.strip_suffix(']'))
        && let Ok(cell) = cell.parse()
    {
        return Owner::Out(cell);
    }
    let of = |prefix: &str| name.strip_prefix(prefix).map(str::to_string);
    if let Some(function) = of("captured by ") {
        return Owner::CapturedConstant(function);
    }
    if let Some(function) = of("residual of ") {
        return Owner::Residual(function);
    }
    if let Some(cache) = of("cache ") {
        return Owner::Cache(cache);
    }
    match name {
        "the last error" => Owner::LastError,
        _ => Owner::Variable(name.to_string()),
    }
}

/// The owner of bytes without a named holder.
pub(crate) fn made_in(origin: Origin) -> Owner {
    match origin.cell {
        0 => Owner::Unknown,
        cell => Owner::MadeIn { cell, line: origin.span.line },
    }
}

pub(crate) fn of_claim(claim: &Claim) -> Owner {
    match &claim.owner {
        Some(name) => parse(name),
        None => made_in(claim.origin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_they_say() {
        assert_eq!(parse("Out[3]"), Owner::Out(3));
        assert_eq!(parse("Out[x]"), Owner::Variable("Out[x]".into()));
        assert_eq!(parse("captured by f"), Owner::CapturedConstant("f".into()));
        assert_eq!(parse("params[3].w"), Owner::Variable("params[3].w".into()));
        assert_eq!(parse("the last error"), Owner::LastError);
        assert_eq!(made_in(Origin::default()), Owner::Unknown);
    }
}
