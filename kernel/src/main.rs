//! `vramlab-kernel`: the Jupyter face.
//!
//! Place in the flow: Jupyter messages in, [`vramlab_session`] events out as messages. It evaluates
//! nothing and formats no table. The wire layer is our own (`wire`); ZeroMQ is a library.

mod connection;
mod content;
mod executor;
mod input;
mod install;
mod outbox;
mod server;
mod wire;

use connection::Connection;
use install::Target;
use std::path::PathBuf;
use std::process::ExitCode;
use vramlab_session::{Config, SETTINGS};

const USAGE: &str = "\
vramlab-kernel: the Jupyter kernel of vramlab

vramlab-kernel install [--user | --sys-prefix | --prefix P] [OPTIONS]
        write the kernel spec, so that Jupyter lists \"Rust + GPU memory (vramlab)\"
vramlab-kernel run CONNECTION_FILE [OPTIONS]
        serve one connection; Jupyter calls this

OPTIONS, kept in the spec by install:";

/// The text of `--help`.
fn usage() -> String {
    let mut text = USAGE.to_string();
    for setting in &SETTINGS {
        let usage = format!("{} {}", setting.option, setting.value);
        text.push_str(&format!("\n  {usage:<28} {}", setting.help));
    }
    text
}

enum Command {
    Install { target: Target, options: Vec<String> },
    Run { file: PathBuf, config: Config },
    Print(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = parse(&arguments).and_then(|command| match command {
        Command::Print(text) => {
            println!("{text}");
            Ok(())
        }
        Command::Install { target, options } => {
            let folder = install::install(&target, &options)?;
            println!("installed kernel spec {} in {}", install::KERNEL_NAME, folder.display());
            Ok(())
        }
        Command::Run { file, config } => server::serve(Connection::read(&file)?, config),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("vramlab-kernel: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Command, String> {
    let nothing = || format!("say what to do\n\n{}", usage());
    let (verb, rest) = arguments.split_first().ok_or_else(nothing)?;
    match verb.as_str() {
        "--help" | "-h" | "help" => Ok(Command::Print(usage())),
        "--version" | "-V" => {
            Ok(Command::Print(format!("vramlab-kernel {}", env!("CARGO_PKG_VERSION"))))
        }
        "install" => parse_install(rest),
        "run" => parse_run(rest),
        other => Err(format!("'{other}' is neither install nor run\n\n{}", usage())),
    }
}

fn parse_install(arguments: &[String]) -> Result<Command, String> {
    let mut target = None;
    let mut options = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let chosen = match argument.as_str() {
            "--user" => Target::User,
            "--sys-prefix" => Target::SysPrefix,
            "--prefix" => Target::Prefix(rest.next().ok_or("--prefix needs a folder")?.into()),
            _ => {
                options.push(argument.clone());
                options.extend(rest.next().cloned());
                continue;
            }
        };
        if target.replace(chosen).is_some() {
            return Err("give one of --user, --sys-prefix and --prefix".into());
        }
    }
    // A value that the session would refuse must fail now and not when a notebook opens.
    settings(&options)?.resolve()?;
    Ok(Command::Install { target: target.unwrap_or(Target::User), options })
}

fn parse_run(arguments: &[String]) -> Result<Command, String> {
    let (file, options) = arguments.split_first().ok_or("run needs a connection file")?;
    Ok(Command::Run { file: file.into(), config: settings(options)? })
}

fn settings(options: &[String]) -> Result<Config, String> {
    let mut config = Config::from_environment();
    let mut rest = options.iter();
    while let Some(name) = rest.next() {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.option == name) else {
            return Err(format!("'{name}' is not an option\n\n{}", usage()));
        };
        let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
        *(setting.field)(&mut config) = Some(value.clone());
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn wrong_words_are_errors_that_say_which() {
        for (line, word) in [
            ("", "install"),
            ("instal", "instal"),
            ("install --prefix", "--prefix"),
            ("install --user --sys-prefix", "one of"),
            ("install --capacity big", "big"),
            ("install --capacity", "--capacity"),
            ("run", "connection file"),
            ("run f.json --colour red", "--colour"),
        ] {
            let problem = parse(&words(line)).err().expect(line);
            assert!(problem.contains(word), "{line}: {problem}");
        }
    }

    #[test]
    fn options_reach_the_session() {
        let command = parse(&words("run f.json --device dry:16GiB --mode platform"));
        let Ok(Command::Run { config, .. }) = command else { panic!("run") };
        assert_eq!(config.device.as_deref(), Some("dry:16GiB"));
        assert_eq!(config.mode.as_deref(), Some("platform"));
    }
}
