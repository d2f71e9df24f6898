//! `%mode` and `%env`'s hand in it: which allocator answers.

use super::{Command, Completing, Effect, Refusal};
use crate::config::unknown;
use crate::event::Table;
use crate::measure::state_line;
use crate::report::{mib, mib_short};
use crate::session::Session;
use crate::sink::Sink;
use vramlab_memory::{ModeSpec, Policy, Road, SwitchPlan};

pub static COMMANDS: &[Command] = &[Command {
    name: "mode",
    aliases: &["alloc"],
    arguments: "[NAME [option=value …] [migrate | new-only | refuse] [dry]]",
    help: "Lists the allocation modes, or switches; live arrays move unless told otherwise.",
    example: "%mode ondemand gc=on",
    complete: Completing::Modes,
    check: Some(|arguments| parse(arguments).map(|_| ())),
    action: mode,
    ..Command::BASE
}];

/// A switch as it was asked for.
struct Wanted {
    spec: ModeSpec,
    policy: Policy,
    /// Only say what it would do.
    dry: bool,
}

fn mode(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    match parse(arguments)? {
        None => sink.table(list(session)),
        Some(wanted) if wanted.dry => {
            let plan = session.context.plan_switch(&wanted.spec, wanted.policy);
            sink.say(format!("{} Nothing was changed.", plan_line(&plan)));
        }
        Some(wanted) => switch(session, &wanted.spec, wanted.policy, sink)?,
    }
    Ok(Effect::Told)
}

/// `None`: the modes are to be listed.
fn parse(arguments: &str) -> Result<Option<Wanted>, Refusal> {
    let mut spec = Vec::new();
    let (mut policy, mut dry) = (Policy::Migrate, false);
    let mut words = arguments.split([' ', ',', '\t']).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "policy" => {
                let value = match value {
                    "" => words.next().unwrap_or(""),
                    value => value,
                };
                policy = Policy::parse(value).ok_or_else(|| no_policy(value))?;
            }
            "mode" if !value.is_empty() => spec.insert(0, value.to_string()),
            "dry" | "--dry" | "--dry-run" => dry = true,
            _ => match Policy::parse(word) {
                Some(named) => policy = named,
                None => spec.push(word.to_string()),
            },
        }
    }
    if spec.is_empty() && !arguments.trim().is_empty() {
        return Err(Refusal::new("which mode? write for example %mode ondemand"));
    }
    if spec.is_empty() {
        return Ok(None);
    }
    let spec = ModeSpec::parse(&spec.join(" ")).map_err(|why| Refusal::new(why.to_string()))?;
    Ok(Some(Wanted { spec, policy, dry }))
}

fn no_policy(given: &str) -> Refusal {
    let names = Policy::ALL.map(|policy| policy.name());
    Refusal::new(unknown("policy", given, names))
}

/// Does it and says what it did. Also the road of `%env XLA_…`.
pub(super) fn switch(
    session: &mut Session,
    spec: &ModeSpec,
    policy: Policy,
    sink: &mut Sink,
) -> Result<(), Refusal> {
    let before = session.context.mode();
    let held = session.context.smi().held_bytes;
    let report = session.context.switch(spec, policy).map_err(Refusal::new)?;
    if report.unchanged {
        sink.say(format!("already {spec}: nothing to do"));
        return Ok(());
    }
    // The larger holding is the one to be surprised at.
    if session.before_switch.as_ref().is_none_or(|(_, most)| held >= *most) {
        session.before_switch = Some((before, held));
    }
    if report.plan.arrays == 0 {
        let figures = session.context.report().figures;
        let (pool, limit) = (mib_short(figures.pool_bytes), mib_short(figures.bytes_limit));
        sink.say(format!("nothing to move. pool {pool}/{limit}"));
        return Ok(());
    }
    sink.say(format!("{} Done.", plan_line(&report.plan)));
    let mut state = state_line(&session.context);
    if report.older_pool_bytes > 0 {
        state.push_str(&format!("   older pools {}", mib(report.older_pool_bytes)));
    }
    sink.say(state);
    Ok(())
}

/// `moves 1 array: old pool 768 + new 16 = 784 of 1024, fits.`
fn plan_line(plan: &SwitchPlan) -> String {
    let arrays = match plan.arrays {
        1 => "1 array".to_string(),
        count => format!("{count} arrays"),
    };
    let (old, new) = (mib_short(plan.old_pool), mib_short(plan.new_pool));
    let capacity = mib_short(plan.capacity);
    match plan.road {
        Road::SideBySide => format!(
            "moves {arrays}: old pool {old} + new {new} = {} of {capacity}, fits.",
            mib_short(plan.peak)
        ),
        Road::ThroughHost => format!(
            "moves {arrays} of {}: old pool {old} and new {new} do not fit side by side in {capacity}, so it stages through host memory; peak {}.",
            mib(plan.bytes),
            mib_short(plan.peak)
        ),
        Road::Stay if plan.arrays == 0 => "nothing to move.".to_string(),
        Road::Stay => format!(
            "{arrays} of {} stay in the old pool ({old}); new requests go to {}.",
            mib(plan.bytes),
            plan.to
        ),
        Road::Refused => format!(
            "would be refused: {arrays} of {} are live, and {} may hold {} of {capacity}.",
            mib(plan.bytes),
            plan.to,
            mib_short(plan.limit)
        ),
    }
}

fn list(session: &Session) -> Table {
    let mut table = Table::new(&["now", "mode", "what it does"]);
    for row in session.context.modes() {
        let mark = if row.current { "→" } else { "" };
        table.row([mark, row.name, row.doc]);
        let options: Vec<String> =
            row.options.iter().map(|option| format!("{}={}", option.name, option.value)).collect();
        if !options.is_empty() {
            table.row(["".to_string(), "".into(), options.join("  ")]);
        }
        let spec = ModeSpec::parse(row.name).unwrap_or_default();
        let lines = spec.jax_lines();
        if !lines.is_empty() {
            table.row(["".to_string(), "".into(), format!("in JAX {}", lines.join(" "))]);
        }
    }
    table.note("live arrays move (migrate), stay (new-only), or forbid the switch (refuse);");
    table.note("with dry behind it a switch only says what it would do");
    table
}

/// Names of modes and options for completion: what may follow these words.
pub(crate) fn completions(words: &[&str]) -> Vec<(String, String)> {
    use vramlab_memory::modes::MODES;
    let policies =
        || Policy::ALL.map(|policy| (policy.name().to_string(), "what live arrays do".to_string()));
    let entry = words.first().and_then(|name| MODES.iter().find(|entry| entry.name == *name));
    let Some(entry) = entry else {
        return MODES.iter().map(|entry| (entry.name.into(), entry.doc.into())).collect();
    };
    let values = entry.options.iter().flat_map(|option| {
        let of = move |value: &&str| (format!("{}={value}", option.name), option.doc.to_string());
        option.kind.examples().iter().map(of).collect::<Vec<_>>()
    });
    values.chain(policies()).chain([("dry".into(), "only say what would happen".into())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_read_in_every_spelling() {
        let of = |text| parse(text).map_err(|refusal| refusal.message);
        let wanted = of("ondemand gc=on new-only").unwrap().unwrap();
        assert_eq!(
            (wanted.spec.to_string(), wanted.policy),
            ("ondemand gc=on".into(), Policy::NewOnly)
        );
        let wanted = of("mode=platform policy refuse dry").unwrap().unwrap();
        assert_eq!((wanted.policy, wanted.dry), (Policy::Refuse, true));
        assert_eq!(of("platform policy=migrate").unwrap().unwrap().policy, Policy::Migrate);
        assert!(of("").unwrap().is_none());
    }

    #[test]
    fn what_is_unknown_is_refused_with_the_valid_words() {
        let why = |text| parse(text).err().map(|refusal| refusal.message).unwrap_or_default();
        assert!(why("ondemnd").contains("did you mean `ondemand`"));
        assert!(why("ondemand gv=on").contains("did you mean `gc`"));
        assert!(why("platform policy=never").contains("migrate, new-only, refuse"));
        assert!(why("policy=refuse").contains("which mode"));
    }
}
