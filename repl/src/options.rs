//! What may stand on the command line: one table, from which parsing, `--help` and the nearest
//! spelling are derived.

use vramlab_session::{Config, SETTINGS};

/// What the process was asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// Cells from the terminal, or from standard input.
    #[default]
    Interactive,
    /// `-c CELL`.
    Cell(String),
    /// `run FILE…`.
    Files(Vec<String>),
    /// `why FILE…`.
    Why(Vec<String>),
    Help,
    Version,
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub config: Config,
    pub task: Task,
    pub json: bool,
    pub keep_going: bool,
    pub no_history: bool,
}

/// One option. With `value` it takes one, as `--name VALUE` or `--name=VALUE`.
struct Entry {
    name: &'static str,
    value: Option<&'static str>,
    help: &'static str,
    apply: fn(&mut Options, String),
}

/// The options of this face alone; the session's own are [`SETTINGS`].
static ENTRIES: &[Entry] = &[
    Entry {
        name: "-c",
        value: Some("CELL"),
        help: "run one cell and leave",
        apply: |options, text| options.task = Task::Cell(text),
    },
    Entry {
        name: "--json",
        value: None,
        help: "one JSON object a line for each cell; goes on after a failure",
        apply: |options, _| {
            options.json = true;
            options.keep_going = true;
        },
    },
    Entry {
        name: "--keep-going",
        value: None,
        help: "go on after a cell that failed",
        apply: |options, _| options.keep_going = true,
    },
    Entry {
        name: "--no-history",
        value: None,
        help: "neither read nor write the history file",
        apply: |options, _| options.no_history = true,
    },
    Entry {
        name: "--help",
        value: None,
        help: "this text",
        apply: |options, _| options.task = Task::Help,
    },
    Entry {
        name: "--version",
        value: None,
        help: "the version",
        apply: |options, _| options.task = Task::Version,
    },
];

/// Words that take files.
const COMMANDS: [&str; 2] = ["run", "why"];

/// Short spellings.
const SHORT: [(&str, &str); 3] = [("-h", "--help"), ("-V", "--version"), ("-m", "--mode")];

/// # Errors
/// What is wrong with the command line, with the nearest spelling.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { config: Config::from_environment(), ..Options::default() };
    let mut arguments = arguments.into_iter();
    let mut files = None;
    let mut command = "";
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            files.get_or_insert_with(Vec::new).extend(arguments.by_ref());
        } else if argument.starts_with('-') && argument != "-" {
            apply(&argument, &mut arguments, &mut options)?;
        } else if let Some(files) = &mut files {
            files.push(argument);
        } else if let Some(known) = COMMANDS.iter().find(|known| **known == argument) {
            command = known;
            files = Some(Vec::new());
        } else {
            return Err(not_a_command(&argument));
        }
    }
    let asked = matches!(options.task, Task::Help | Task::Version);
    match files {
        Some(_) if asked => {}
        Some(files) if files.is_empty() && command == "why" => {
            return Err("why needs a FILE: a log, a dump, a memory profile, or -".into());
        }
        Some(files) if files.is_empty() => {
            return Err("run needs a FILE: a .rs in percent format, a .ipynb, or -".into());
        }
        Some(_) if options.task != Task::Interactive && command == "why" => {
            return Err("-c runs a cell and why reads files; give one".into());
        }
        Some(_) if options.task != Task::Interactive => {
            return Err("-c and run are two ways to say what to run; give one".into());
        }
        Some(files) if command == "why" => options.task = Task::Why(files),
        Some(files) => options.task = Task::Files(files),
        None => {}
    }
    Ok(options)
}

fn apply(
    argument: &str,
    rest: &mut impl Iterator<Item = String>,
    options: &mut Options,
) -> Result<(), String> {
    let (name, mut value) = match argument.split_once('=') {
        Some((name, value)) if name.starts_with("--") => (name, Some(value.to_string())),
        _ => (argument, None),
    };
    let name = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
    let setting = SETTINGS.iter().find(|setting| setting.option == name);
    let entry = ENTRIES.iter().find(|entry| entry.name == name);
    let wanted = match (setting, entry) {
        (Some(setting), _) => Some(setting.value),
        (None, Some(entry)) => entry.value,
        (None, None) => return Err(unknown(name)),
    };
    match (wanted, &value) {
        (None, Some(value)) => return Err(format!("{name} takes no value, so no `{value}`")),
        (Some(what), None) => {
            value = rest.next();
            if value.is_none() {
                return Err(format!("{name} needs a value: {name} {what}"));
            }
        }
        _ => {}
    }
    match (setting, entry) {
        (Some(setting), _) => *(setting.field)(&mut options.config) = value,
        (None, Some(entry)) => (entry.apply)(options, value.unwrap_or_default()),
        (None, None) => {}
    }
    Ok(())
}

fn names() -> impl Iterator<Item = &'static str> + Clone {
    let settings = SETTINGS.iter().map(|setting| setting.option);
    settings.chain(ENTRIES.iter().map(|entry| entry.name))
}

fn unknown(name: &str) -> String {
    let names = names();
    match vramlab_session::nearest(name, names) {
        Some(near) => format!("no option `{name}`; did you mean `{near}`?"),
        None => format!("no option `{name}`; --help lists them"),
    }
}

fn not_a_command(word: &str) -> String {
    let looks_like_a_file = word.ends_with(".rs") || word.ends_with(".ipynb");
    match looks_like_a_file {
        true => format!("to run a file write: vramlab run {word}"),
        false => match vramlab_session::nearest(word, COMMANDS) {
            Some(near) => format!("no command `{word}`; did you mean `{near}`?"),
            None => format!("no command `{word}`; there are run and why, --help says more"),
        },
    }
}

/// The text of `--help`.
pub fn help() -> String {
    let mut text = String::from(
        "vramlab: Rust cells on live device arrays, with a memory table after each.\n\n\
         vramlab [OPTIONS]                 cells from the terminal, or from standard input\n\
         vramlab [OPTIONS] -c CELL         one cell\n\
         vramlab [OPTIONS] run FILE…       a .rs file in percent format (// %%), an .ipynb, or -\n\
         vramlab [--json] why FILE…        what an out-of-memory text from elsewhere says, or -\n\n",
    );
    let settings = SETTINGS.iter().map(|s| (s.option, s.value, s.help));
    let own = ENTRIES.iter().map(|e| (e.name, e.value.unwrap_or(""), e.help));
    for (name, value, help) in settings.chain(own) {
        let usage = format!("{name} {value}");
        text.push_str(&format!("  {usage:<26} {help}\n"));
    }
    text.push_str(
        "\nVRAMLAB_DEVICE, VRAMLAB_CAPACITY, VRAMLAB_MODE and VRAMLAB_WATCH say the same; JAX's\n\
         XLA_PYTHON_CLIENT_PREALLOCATE, XLA_CLIENT_MEM_FRACTION and XLA_PYTHON_CLIENT_ALLOCATOR are\n\
         read too. NO_COLOR turns colours off. The exit status is 1 if a cell failed, 2 for a wrong\n\
         command line.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Result<Options, String> {
        parse(arguments.iter().map(|argument| argument.to_string()))
    }

    #[test]
    fn options_stand_anywhere() {
        let options = of(&["run", "--json", "--capacity=1GiB", "a.rs", "b.ipynb"]).unwrap();
        assert_eq!(options.task, Task::Files(vec!["a.rs".into(), "b.ipynb".into()]));
        assert!(options.json && options.keep_going);
        assert_eq!(options.config.capacity.as_deref(), Some("1GiB"));
        let options = of(&["--mode", "ondemand gc=on", "-c", "1 + 1"]).unwrap();
        assert_eq!(options.task, Task::Cell("1 + 1".into()));
    }

    #[test]
    fn wrong_lines_are_refused_with_the_nearest_word() {
        assert!(of(&["--capcity", "1"]).unwrap_err().contains("`--capacity`"));
        assert!(of(&["--capacity"]).unwrap_err().contains("needs a value"));
        assert!(of(&["--json=yes"]).unwrap_err().contains("takes no value"));
        assert!(of(&["rnu"]).unwrap_err().contains("`run`"));
        assert!(of(&["a.rs"]).unwrap_err().contains("vramlab run a.rs"));
        assert!(of(&["run"]).unwrap_err().contains("FILE"));
        assert!(of(&["-c", "1", "run", "x"]).is_err());
    }

    #[test]
    fn help_names_every_option() {
        let text = help();
        assert!(names().all(|name| text.contains(name)));
    }
}
