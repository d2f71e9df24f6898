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
    /// `check FILE --against BASE`.
    Check(String),
    /// `replay TRACE…`.
    Replay(Vec<String>),
    /// `view SNAPSHOT…`.
    View(Vec<String>),
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
    /// `--export`: format and path, in the order given.
    pub exports: Vec<(String, String)>,
    /// `--against`: the kept run of `check`.
    pub against: Option<String>,
    /// `--tolerance`, as given.
    pub tolerance: Option<String>,
    /// `--update`: keep this run as the base.
    pub update: bool,
    /// `--html`: where `view` writes its page.
    pub html: Option<String>,
    /// `--exact`: `replay` searches the smallest device to the MiB.
    pub exact: bool,
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
        name: "--export",
        value: Some("FORMAT=PATH"),
        help: "at the end, as %export FORMAT PATH; may stand several times",
        apply: |options, text| {
            let (format, path) = text.split_once('=').unwrap_or((&text, ""));
            options.exports.push((format.to_string(), path.to_string()));
        },
    },
    Entry {
        name: "--against",
        value: Some("BASE"),
        help: "for check: the kept run, of --update or of run --json",
        apply: |options, text| options.against = Some(text),
    },
    Entry {
        name: "--tolerance",
        value: Some("1%|4MiB"),
        help: "for check: how much more is no regression (nothing)",
        apply: |options, text| options.tolerance = Some(text),
    },
    Entry {
        name: "--update",
        value: None,
        help: "for check: keep this run as the base",
        apply: |options, _| options.update = true,
    },
    Entry {
        name: "--html",
        value: Some("PAGE"),
        help: "for view: a page with timeline, map and owners, in one file",
        apply: |options, text| options.html = Some(text),
    },
    Entry {
        name: "--exact",
        value: None,
        help: "for replay: search the smallest device to the MiB, however long the trace",
        apply: |options, _| options.exact = true,
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
const COMMANDS: [&str; 5] = ["run", "why", "check", "replay", "view"];

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
    if !matches!(options.task, Task::Help | Task::Version) {
        if let Some(files) = files {
            options.task = task_of(command, files, &options.task)?;
        }
        belongs_together(&options)?;
    }
    Ok(options)
}

/// What a word and its files ask for.
fn task_of(command: &str, mut files: Vec<String>, so_far: &Task) -> Result<Task, String> {
    if files.is_empty() {
        return Err(match command {
            "why" => "why needs a FILE: a log, a dump, a memory profile, or -".into(),
            "replay" | "view" => format!(
                "{command} needs a FILE: a vramlab trace, a PyTorch memory snapshot or an RMM log"
            ),
            _ => format!("{command} needs a FILE: a .rs in percent format, a .ipynb, or -"),
        });
    }
    if *so_far != Task::Interactive {
        return Err(match command {
            "run" => "-c and run are two ways to say what to run; give one".into(),
            _ => format!("-c runs a cell and {command} reads files; give one"),
        });
    }
    match command {
        "why" => Ok(Task::Why(files)),
        "check" if files.len() > 1 => {
            Err(format!("check compares one FILE with its base, and {} were given", files.len()))
        }
        "check" => Ok(Task::Check(files.remove(0))),
        "replay" => Ok(Task::Replay(files)),
        "view" => Ok(Task::View(files)),
        _ => Ok(Task::Files(files)),
    }
}

/// Options that say nothing to the task are refused, since they would be ignored.
fn belongs_together(options: &Options) -> Result<(), String> {
    for (format, path) in &options.exports {
        vramlab_session::export_format(format).map_err(|why| format!("--export: {why}"))?;
        if path.is_empty() {
            return Err(format!("--export {format} needs a file: --export {format}=PATH"));
        }
    }
    match &options.task {
        Task::Check(_) if options.against.is_none() => {
            return Err("check needs a kept run: --against base.json (--update makes it)".into());
        }
        Task::Check(_) => {}
        _ if options.against.is_some() || options.tolerance.is_some() || options.update => {
            return Err("--against, --tolerance and --update go with check".into());
        }
        _ => {}
    }
    if options.html.is_some() && !matches!(options.task, Task::View(_)) {
        return Err("--html goes with view".into());
    }
    if options.exact && !matches!(options.task, Task::Replay(_)) {
        return Err("--exact goes with replay".into());
    }
    let reads_files = matches!(options.task, Task::Why(_) | Task::Replay(_) | Task::View(_));
    let runs_cells = !reads_files && !matches!(options.task, Task::Check(_));
    if !options.exports.is_empty() && !runs_cells {
        return Err("--export goes with run, -c, or cells from standard input".into());
    }
    Ok(())
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
            None => {
                let commands = COMMANDS.join(", ");
                format!("no command `{word}`; there are {commands}; --help says more")
            }
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
         vramlab [--json] why FILE…        what an out-of-memory text from elsewhere says, or -\n\
         vramlab [--mode=A,B…|all] [--capacity SIZE] [--json] replay TRACE…\n\
        \x20                                 a recording through other modes: does it pass, peak, pool, smallest device\n\
         vramlab [--json] [--html PAGE] view TRACE…\n\
        \x20                                 what is in a recording: peak, owners, holes\n\
         vramlab check FILE --against BASE peaks and pools of each cell against a kept run\n\n",
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
         read too. VRAMLAB_SHARED_FOLDER says where shared devices (cpu:NAME) are kept instead of\n\
         /dev/shm. NO_COLOR turns colours off. The exit status is 1 if a cell failed or a figure grew, 2\n\
         for a wrong command line.\n",
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
        let options = of(&["run", "a.rs", "--export=viz=a=b.pickle", "--export", "csv=c"]).unwrap();
        let exports = [("viz", "a=b.pickle"), ("csv", "c")];
        assert_eq!(options.exports, exports.map(|(f, p)| (f.to_string(), p.to_string())));
        let options = of(&["check", "a.rs", "--against", "b.json", "--tolerance", "1%"]).unwrap();
        assert_eq!(options.task, Task::Check("a.rs".into()));
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
        assert!(of(&["check", "a.rs"]).unwrap_err().contains("--against"));
        assert!(of(&["check", "a.rs", "b.rs", "--against", "x"]).unwrap_err().contains("one FILE"));
        assert!(of(&["run", "a.rs", "--update"]).unwrap_err().contains("go with check"));
        assert!(of(&["run", "a.rs", "--export", "pprofe=x"]).unwrap_err().contains("`pprof`"));
        assert!(of(&["run", "a.rs", "--export", "viz"]).unwrap_err().contains("viz=PATH"));
        assert!(of(&["why", "a", "--export", "viz=x"]).unwrap_err().contains("goes with run"));
    }

    #[test]
    fn help_names_every_option() {
        let text = help();
        assert!(names().all(|name| text.contains(name)));
    }
}
