//! Opens files that a user names, without ever blocking.
//!
//! A named pipe is refused: opening one blocks until a program writes into it, perhaps forever. The pipes that the
//! shell creates for `<(command)`, and for `/dev/stdin` after a `|`, have a writer and are accepted. The crate
//! deliberately does not limit how much is read, apart from the limits that a caller passes in.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Opens a file for reading.
///
/// # Errors
/// If the file cannot be opened, or is a named pipe.
pub fn open(path: &Path) -> Result<File> {
    let is_pipe = std::os::unix::fs::FileTypeExt::is_fifo(&std::fs::metadata(path)?.file_type());
    // A pipe created by the shell has no path in the file system.
    if is_pipe && path.canonicalize().is_ok() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is a named pipe, expected a regular file"));
    }
    File::open(path)
}

/// Reads a file of at most `bytes_max` bytes as text.
///
/// # Errors
/// As [`open`], and if the file is larger or not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    String::from_utf8(read(path, bytes_max)?).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
/// As [`open`], and if the file is larger.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it is larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_named_pipe_is_refused_at_once_and_a_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(open(&pipe).unwrap_err().to_string(), "it is a named pipe, expected a regular file");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_text(&file, 4).unwrap(), "four");
        assert_eq!(read_text(&file, 3).unwrap_err().to_string(), "it is larger than 3 bytes");
        assert!(open(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_pipe_that_has_its_writer_is_read() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, b"text").unwrap();
        drop(writer);
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(read_text(Path::new(&path), 10).unwrap(), "text");
    }
}
