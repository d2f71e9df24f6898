//! `vramlab why FILE…`: reads the files, hands their bytes to the session's reader, prints what it says.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;
use vramlab_session::why::why_text;

/// A log of this size is not what a failure left; the part around it is.
const LARGEST: u64 = 256 << 20;

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

fn read(file: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = match file {
        "-" => std::io::stdin().take(LARGEST + 1).read_to_end(&mut bytes),
        path => File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|why| why.to_string())?;
    match bytes.len() as u64 > LARGEST {
        true => Err("more than 256 MiB; give the part around the failure".into()),
        false => Ok(bytes),
    }
}
