//! Where ledgers lie unless somebody says otherwise.

use super::folder::own_user;
use std::path::{Path, PathBuf};

/// The folders that a ledger may lie in, best first: shared memory, the user's own run-time folder (where one is
/// given, as an absolute path), the folder for temporary files. Each is private to the user.
pub fn usual_folders(runtime: Option<&str>, temporary: &str) -> Vec<PathBuf> {
    let own = format!("vramlab-{}", own_user());
    let runtime = runtime.map(Path::new).filter(|path| path.is_absolute());
    let mut folders = vec![Path::new("/dev/shm").join(&own)];
    folders.extend(runtime.map(|path| path.join("vramlab")));
    folders.push(Path::new(temporary).join(own));
    folders
}
