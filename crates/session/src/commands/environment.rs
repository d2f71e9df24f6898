//! `%env` and `%tier`.

use super::allocation::switch;
use super::{Command, Completing, Effect, Refusal, word_of};
use crate::event::Table;
use crate::session::Session;
use crate::sink::Sink;
use std::collections::BTreeMap;
use vramlab_memory::modes::{JAX_VARIABLES, TORCH_VARIABLES, from_jax, from_torch_variables};
use vramlab_memory::{ModeError, ModeSpec, Policy, nearest};

pub static COMMANDS: &[Command] = &[
    Command {
        name: "env",
        arguments: "[NAME[=VALUE]]",
        help: "The environment of the session; an XLA_… variable acts at once.",
        example: "%env XLA_PYTHON_CLIENT_PREALLOCATE=false",
        complete: Completing::Environment,
        action: env,
        ..Command::BASE
    },
    Command {
        name: "tier",
        arguments: "[auto | instant]",
        help: "Which tier runs cells.",
        example: "%tier auto",
        complete: Completing::Words(&["auto", "instant"]),
        action: tier,
        ..Command::BASE
    },
];

fn env(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    match arguments.split_once('=') {
        Some((name, value)) => set(session, name.trim(), value.trim(), sink)?,
        None if arguments.is_empty() => sink.table(list(session)),
        None => match session.env.get(arguments) {
            Some(value) => sink.say(format!("{arguments}={value}")),
            None => {
                let near = nearest(arguments, session.env.keys().map(String::as_str));
                let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                return Err(Refusal::new(format!("{arguments} is not set{near}")));
            }
        },
    }
    Ok(Effect::Told)
}

/// Ours, JAX's and PyTorch's; the rest of the environment is one `%env NAME` away.
fn list(session: &Session) -> Table {
    let of_interest = ["XLA_", "JAX_", "PYTORCH_", "CUDA_", "VRAMLAB_"];
    let mut table = Table::new(&["name", "value", ""]);
    for (name, value) in &session.env {
        if of_interest.iter().any(|prefix| name.starts_with(prefix)) {
            let acts = if acting().any(|acting| acting == name) { "acts here" } else { "" };
            table.row([name.as_str(), value, acts]);
        }
    }
    for name in JAX_VARIABLES.iter().filter(|name| !session.env.contains_key(**name)) {
        table.row([*name, "(not set)", "acts here"]);
    }
    table
}

/// The variables that a mode follows from.
fn acting() -> impl Iterator<Item = &'static str> {
    JAX_VARIABLES.into_iter().chain(TORCH_VARIABLES)
}

/// The mode that the environment asks for once `name` is set, and what a user should know.
fn asked_for(
    name: &str,
    env: &BTreeMap<String, String>,
) -> Result<(ModeSpec, Vec<String>), ModeError> {
    let read = match TORCH_VARIABLES.contains(&name) {
        true => from_torch_variables(env)?,
        false => from_jax(env)?,
    };
    // An emptied variable leaves the choice to the other family.
    let spec = match read.spec {
        Some(spec) => spec,
        None => from_jax(env)?.spec.or(from_torch_variables(env)?.spec).unwrap_or_default(),
    };
    Ok((spec, read.notes))
}

fn set(session: &mut Session, name: &str, value: &str, sink: &mut Sink) -> Result<(), Refusal> {
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    if name.is_empty() || !name.chars().all(is_name) || name.starts_with(|c: char| c.is_numeric()) {
        return Err(Refusal::new(format!("`{name}` is no name of a variable")));
    }
    let value = value.trim_matches(['"', '\'']);
    if !acting().any(|acting| acting == name) {
        misspelt(name)?;
        session.env.insert(name.into(), value.into());
        sink.say(format!("{name}={value}   (for ! lines; arrays do not read it)"));
        return Ok(());
    }
    // Judged on a copy: a refused value leaves the session as it was.
    let mut env = session.env.clone();
    env.insert(name.into(), value.into());
    let (spec, notes) = asked_for(name, &env).map_err(|why| Refusal::new(why.to_string()))?;
    sink.say(format!("{name}={value} acts now: {spec}"));
    for note in &notes {
        sink.say(format!("note: {note}"));
    }
    switch(session, &spec, Policy::Migrate, sink)?;
    session.env = env;
    let program = if TORCH_VARIABLES.contains(&name) { "PyTorch" } else { "JAX" };
    sink.say(format!(
        "{program} would not: it reads the variable once, when the process first touches the device",
    ));
    Ok(())
}

/// A variable that JAX or PyTorch would silently ignore is a misspelling more often than not.
fn misspelt(name: &str) -> Result<(), Refusal> {
    if !name.starts_with("XLA_") && !name.starts_with("PYTORCH_") {
        return Ok(());
    }
    let lower: Vec<String> = acting().map(str::to_lowercase).collect();
    match nearest(name, lower.iter().map(String::as_str)) {
        Some(near) => {
            let near = near.to_uppercase();
            Err(Refusal::new(format!("nobody reads {name}; did you mean {near}?")))
        }
        None => Ok(()),
    }
}

fn tier(_: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    if arguments == "compiled" {
        return Err(Refusal::new("there is no compiled tier here: cells run in the instant tier")
            .help("a cell outside of its subset is refused before anything runs"));
    }
    if !arguments.is_empty() {
        word_of("tier", arguments, &["auto", "instant"])?;
    }
    sink.say("tier instant: every cell is checked as rustc would and run in this process");
    Ok(Effect::Told)
}
