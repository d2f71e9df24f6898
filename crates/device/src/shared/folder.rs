//! Where ledger files lie: a private folder of ours within one that everybody may have.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An open folder that belongs to this user and that nobody else may enter.
#[derive(Debug)]
pub struct Folder {
    open: File,
    path: PathBuf,
}

impl Folder {
    /// The folder, if it is there.
    ///
    /// # Errors
    /// Why it cannot be used, in words.
    pub fn find(path: &Path) -> Result<Option<Folder>, String> {
        let at = |error: io::Error| format!("{}: {error}", path.display());
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let open = match open_at(libc::AT_FDCWD, path.as_os_str().as_bytes(), flags) {
            Ok(open) => open,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(error)),
        };
        let meta = open.metadata().map_err(at)?;
        if meta.uid() != own_user() {
            return Err(format!("{} belongs to another user", path.display()));
        }
        make_private(&open, &meta, 0o700).map_err(at)?;
        Ok(Some(Folder { open, path: path.to_path_buf() }))
    }

    /// The folder, made if need be; the one around it has to be there.
    ///
    /// # Errors
    /// Why it cannot be used, in words.
    pub fn make(path: &Path) -> Result<Folder, String> {
        if let Some(found) = Folder::find(path)? {
            return Ok(found);
        }
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| format!("{path:?} is no path"))?;
        // SAFETY: a path that ends in a zero byte.
        if unsafe { libc::mkdir(name.as_ptr(), 0o700) } != 0 {
            let error = io::Error::last_os_error();
            // Somebody else was faster.
            if error.kind() != io::ErrorKind::AlreadyExists {
                return Err(format!("{}: {error}", path.display()));
            }
        }
        Folder::find(path)?.ok_or_else(|| format!("{}: it went away", path.display()))
    }

    /// The path of a file in it.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a file to read and write, making it first if asked to. A link is not followed.
    pub fn open(&self, name: &str, make: bool) -> io::Result<File> {
        let make = if make { libc::O_CREAT } else { 0 };
        // Without `O_NONBLOCK` a pipe of that name would hold us up.
        let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK | make;
        open_at(self.open.as_raw_fd(), name.as_bytes(), flags)
    }

    /// Removes a file, if the name still stands for that one.
    pub fn remove(&self, name: &str, file: &File) {
        let Ok(now) = self.open(name, false) else { return };
        let same = match (now.metadata(), file.metadata()) {
            (Ok(now), Ok(ours)) => (now.dev(), now.ino()) == (ours.dev(), ours.ino()),
            _ => false,
        };
        let Ok(name) = CString::new(name) else { return };
        if same {
            // SAFETY: an open folder and a name that ends in a zero byte. A file that stays is cleared by the next
            // process that joins, so there is nothing to do about a failure.
            unsafe { libc::unlinkat(self.open.as_raw_fd(), name.as_ptr(), 0) };
        }
    }
}

/// Takes away every right of other users.
pub fn make_private(open: &File, meta: &std::fs::Metadata, mode: u32) -> io::Result<()> {
    if meta.mode() & 0o777 == mode {
        return Ok(());
    }
    // SAFETY: an open descriptor.
    match unsafe { libc::fchmod(open.as_raw_fd(), mode as libc::mode_t) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The user whose rights this process has.
pub fn own_user() -> u32 {
    // SAFETY: `geteuid` cannot fail and touches no memory.
    unsafe { libc::geteuid() }
}

fn open_at(folder: libc::c_int, name: &[u8], flags: libc::c_int) -> io::Result<File> {
    let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mode: libc::c_uint = 0o600;
    // SAFETY: a name that ends in a zero byte; the descriptor is new and becomes the file's own.
    unsafe {
        match libc::openat(folder, name.as_ptr(), flags, mode) {
            -1 => Err(io::Error::last_os_error()),
            open => Ok(File::from_raw_fd(open)),
        }
    }
}
