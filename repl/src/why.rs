//! `vramlab why FILE…`: reads the files, hands their bytes to the session's reader, prints what it says.

use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;
use vramlab_session::why::{read, why_text};

/// Explains each file; one that cannot be read is named on standard error, and the others go on.
pub fn run(files: &[String], json: bool) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for (n, file) in files.iter().enumerate() {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = match read(file) {
            Ok(bytes) if json => writeln!(text, "{}", why_text(&bytes).json_line(file)),
            Ok(bytes) if files.len() > 1 => {
                let gap = if n > 0 { "\n" } else { "" };
                write!(text, "{gap}{file}\n{}", why_text(&bytes))
            }
            Ok(bytes) => write!(text, "{}", why_text(&bytes)),
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "vramlab: {file}: {why}");
                code = ExitCode::from(1);
                continue;
            }
        };
        if std::io::stdout().write_all(text.as_bytes()).is_err() {
            break;
        }
    }
    code
}
