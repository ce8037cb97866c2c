//! The last acknowledged commit, in a file beside the database. It is needed because SQLite treats a damaged log as one
//! that ends earlier.
//!
//! Each commit has a number, which the database stores with the commit. Once a commit is on disk, and before it is
//! acknowledged, its number is written here, in place and without a flush. After a loss of power, an earlier number may
//! be here, never a later one. A database with fewer commits has lost acknowledged ones.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::record::Mark;
use crate::Flush;

/// Length of the file. It is always the same, so that each write replaces the whole content.
const BYTES: usize = 96;
/// The kernel's id of the current boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Number of commits and documents in the database at the last acknowledgement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Commits {
    /// Number of the commit, from 1.
    pub(crate) number: u64,
    /// Number of documents in all containers after it.
    pub(crate) documents: u64,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    pub(super) commits: Commits,
    /// The boot of the machine for which the file is valid; `None` if the commits were flushed to disk.
    boot: Option<String>,
}

/// The file as found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    Missing,
    Damaged,
    Read(Acknowledgement),
}

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct AcknowledgedFile {
    file: File,
    boot: Option<String>,
}

impl Commits {
    /// Its row in `marks`, stored under [`COMMITS`](super::rows::COMMITS).
    pub(super) fn to_mark(self) -> Mark {
        Mark { lsn: self.number, number: 0, documents: self.documents }
    }

    pub(super) fn of_mark(mark: Mark) -> Self {
        Self { number: mark.lsn, documents: mark.documents }
    }
}

impl Note {
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        match fs::read(path) {
            Ok(bytes) => Ok(Acknowledgement::parse(&bytes).map_or(Self::Damaged, Self::Read)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::Missing),
            Err(error) => Err(error),
        }
    }
}

impl Acknowledgement {
    /// Whether a database with fewer commits has lost some of them.
    pub(super) fn is_binding(&self) -> bool {
        self.boot.is_none() || self.boot == boot()
    }

    fn text(&self) -> String {
        let Commits { number, documents } = self.commits;
        let boot = self.boot.as_deref().unwrap_or("flushed");
        let line = format!("{number:020} {documents:020} {boot:<36}");
        format!("{line} {:08x}{:>8}\n", crc32fast::hash(line.as_bytes()), "")
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let mut words = text.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let documents = words.next()?.parse().ok()?;
        let boot = words.next().filter(|boot| *boot != "flushed").map(str::to_owned);
        let read = Self { commits: Commits { number, documents }, boot };
        (read.text() == text).then_some(read)
    }
}

impl AcknowledgedFile {
    /// Opens or creates the file and writes `commits` to it.
    pub(super) fn open(path: &Path, commits: Commits, sync: Flush) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        file.set_len(BYTES as u64)?;
        let boot = match sync {
            Flush::Always => None,
            // Without a boot id the file is not binding.
            Flush::Never => Some(boot().unwrap_or_else(|| "unknown".to_owned())),
        };
        let opened = Self { file, boot };
        opened.write(commits)?;
        opened.file.sync_all()?;
        File::open(path.parent().unwrap_or(path))?.sync_all()?;
        Ok(opened)
    }

    /// Records that `commits` are on disk, or with the operating system if nothing is flushed.
    pub(super) fn write(&self, commits: Commits) -> io::Result<()> {
        let text = Acknowledgement { commits, boot: self.boot.clone() }.text();
        self.file.write_all_at(text.as_bytes(), 0)
    }

    /// Records that `commits` have been flushed.
    pub(super) fn flushed(mut self, commits: Commits) -> io::Result<()> {
        self.boot = None;
        self.write(commits)?;
        self.file.sync_all()
    }
}

fn boot() -> Option<String> {
    fs::read_to_string(BOOT).ok().map(|boot| boot.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(sync: Flush) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let file = AcknowledgedFile::open(&dir.path().join("a"), Commits::default(), sync).unwrap();
        file.write(Commits { number: u64::MAX, documents: 12 }).unwrap();
        fs::read(dir.path().join("a")).unwrap()
    }

    #[test]
    fn the_last_number_written_is_read() {
        for sync in [Flush::Always, Flush::Never] {
            let bytes = written(sync);
            let read = Acknowledgement::parse(&bytes).unwrap();
            assert_eq!((bytes.len(), read.commits.number, read.commits.documents), (BYTES, u64::MAX, 12));
            assert!(read.is_binding());
        }
        let before = Acknowledgement { commits: Commits::default(), boot: Some("another".to_owned()) };
        assert!(!before.is_binding());
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let bytes = written(Flush::Never);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Acknowledgement::parse(&damaged), None, "bit {bit}");
        }
        assert_eq!(Acknowledgement::parse(&bytes[1..]), None);
        assert_eq!(Acknowledgement::parse(b""), None);
    }
}
