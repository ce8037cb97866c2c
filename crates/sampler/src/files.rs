//! Files of `/proc` and of control groups, read into one buffer and kept open from reading to reading.
//!
//! Opening a file of `/proc` costs more than reading it. A kept file also belongs to the very process or thread it was
//! opened for: once that has ended a read fails, even when its number is used again. How many are kept is bounded, so
//! that the load engine's connections never run out of descriptors; beyond that files are opened each time.

use std::fmt::{self, Write};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::RawDir;
use rustix::process::{Resource, getrlimit};

/// Files kept open at most.
const KEPT_MAX: usize = 1024;
/// And of the descriptors this process may have, at most one in so many: where there are few, connections need them.
const KEPT_SHARE: u64 = 32;
/// A file of one record is read up to here; `status` of a thread, the longest, is some 1,500 bytes.
const RECORD_BYTES_MAX: usize = 8 << 10;
/// A file of many records is read up to here.
const WHOLE_BYTES_MAX: u64 = 1 << 20;
/// Entries of a directory are requested in pieces of this size.
const ENTRIES_BYTES: usize = 32 << 10;

/// A file that may be kept open. Belongs to one path.
#[derive(Debug, Default)]
pub(super) struct KeptFile(Option<(File, Arc<()>)>);

impl KeptFile {
    pub(super) fn is_open(&self) -> bool {
        self.0.is_some()
    }
}

/// Reads files. Paths are relative to `/proc` unless they begin with `/`.
#[derive(Debug)]
pub(super) struct Files {
    proc: String,
    path: String,
    record: Vec<u8>,
    whole: Vec<u8>,
    entries: Vec<u8>,
    /// One more for each file that is kept.
    kept: Arc<()>,
    kept_max: usize,
}

impl Files {
    /// `proc` is where `/proc` is mounted.
    pub(super) fn new(proc: &str) -> Self {
        let allowed = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |limit| (limit / KEPT_SHARE) as usize);
        Self {
            proc: proc.to_owned(),
            path: String::new(),
            record: vec![0; RECORD_BYTES_MAX],
            whole: Vec::new(),
            entries: Vec::with_capacity(ENTRIES_BYTES),
            kept: Arc::new(()),
            kept_max: KEPT_MAX.min(allowed),
        }
    }

    /// A file of one record, which the kernel hands out in one piece.
    pub(super) fn record(&mut self, kept: &mut KeptFile, path: fmt::Arguments<'_>) -> io::Result<&[u8]> {
        self.open(kept, path)?;
        let Some((file, _)) = &kept.0 else { return Ok(&[]) };
        let read = file.read_at(&mut self.record, 0);
        if read.is_err() || self.has_too_many() {
            kept.0 = None;
        }
        Ok(&self.record[..read?])
    }

    /// A file of one record that is not kept.
    pub(super) fn once(&mut self, path: fmt::Arguments<'_>) -> io::Result<&[u8]> {
        self.record(&mut KeptFile::default(), path)
    }

    /// All of a file of many records, to the last whole one that fits.
    pub(super) fn whole(&mut self, path: fmt::Arguments<'_>) -> io::Result<&[u8]> {
        self.head(path, WHOLE_BYTES_MAX)
    }

    /// The beginning of a file of many records, to the last whole one in so many bytes.
    pub(super) fn head(&mut self, path: fmt::Arguments<'_>, bytes_max: u64) -> io::Result<&[u8]> {
        self.set_path(path);
        self.whole.clear();
        File::open(&self.path)?.take(bytes_max).read_to_end(&mut self.whole)?;
        if self.whole.len() as u64 == bytes_max {
            let end = self.whole.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
            self.whole.truncate(end);
        }
        Ok(&self.whole)
    }

    /// Size of a directory by `stat`.
    pub(super) fn size(&mut self, kept: &mut KeptFile, path: fmt::Arguments<'_>) -> io::Result<u64> {
        self.open(kept, path)?;
        let Some((file, _)) = &kept.0 else { return Ok(0) };
        let size = rustix::fs::fstat(file).map(|stat| u64::try_from(stat.st_size).unwrap_or(0));
        if size.is_err() || self.has_too_many() {
            kept.0 = None;
        }
        Ok(size?)
    }

    /// The entries of a directory that are numbers, each with its inode, and how many came beyond `max`.
    pub(super) fn numbered(&mut self, path: fmt::Arguments<'_>, max: usize) -> io::Result<(Vec<(u32, u64)>, u64)> {
        self.set_path(path);
        let directory = File::open(&self.path)?;
        let (mut found, mut over) = (Vec::new(), 0);
        let mut entries = RawDir::new(&directory, self.entries.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let Some(number) = entry.file_name().to_str().ok().and_then(|name| name.parse().ok()) else { continue };
            if found.len() < max {
                found.push((number, entry.ino()));
            } else {
                over += 1;
            }
        }
        Ok((found, over))
    }

    /// Whether a path lies on the kernel's own file system of processes.
    pub(super) fn is_in_procfs(&mut self, path: fmt::Arguments<'_>) -> bool {
        self.set_path(path);
        rustix::fs::statfs(&self.path).is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
    }

    /// The first bytes at an offset of a file; `None` if there are fewer.
    pub(super) fn bytes<const N: usize>(&mut self, path: fmt::Arguments<'_>, offset: u64) -> Option<[u8; N]> {
        self.set_path(path);
        let mut bytes = [0; N];
        File::open(&self.path).ok()?.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }

    /// Whether a path leads to a regular file.
    pub(super) fn is_regular(&mut self, path: fmt::Arguments<'_>) -> bool {
        self.set_path(path);
        std::fs::metadata(&self.path).is_ok_and(|metadata| metadata.is_file())
    }

    /// Where a link of `/proc` points.
    pub(super) fn link(&mut self, path: fmt::Arguments<'_>) -> io::Result<String> {
        self.set_path(path);
        let target = std::fs::read_link(&self.path)?;
        Ok(target.to_string_lossy().into_owned())
    }

    fn open(&mut self, kept: &mut KeptFile, path: fmt::Arguments<'_>) -> io::Result<()> {
        if kept.0.is_none() {
            self.set_path(path);
            kept.0 = Some((File::open(&self.path)?, Arc::clone(&self.kept)));
        }
        Ok(())
    }

    fn has_too_many(&self) -> bool {
        // This reader itself counts once.
        Arc::strong_count(&self.kept) - 1 > self.kept_max
    }

    fn set_path(&mut self, path: fmt::Arguments<'_>) {
        self.path.clear();
        self.path.push_str(&self.proc);
        self.path.push('/');
        let relative = self.path.len();
        // Writing to a string cannot fail.
        let _ = self.path.write_fmt(path);
        if self.path[relative..].starts_with('/') {
            self.path.drain(..relative);
        }
    }
}

/// Whether this user may not read it, as opposed to its being gone.
pub(super) fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_files_are_kept_than_allowed_and_all_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(folder.path().to_str().unwrap());
        files.kept_max = 2;
        let mut kept: Vec<KeptFile> = (0..4).map(|_| KeptFile::default()).collect();
        for round in 0..3 {
            for (at, kept) in kept.iter_mut().enumerate() {
                std::fs::write(folder.path().join(at.to_string()), format!("{at} {round}")).unwrap();
                assert_eq!(files.record(kept, format_args!("{at}")).unwrap(), format!("{at} {round}").as_bytes());
            }
            assert_eq!(kept.iter().filter(|kept| kept.is_open()).count(), 2);
        }
        kept.clear();
        let mut last = KeptFile::default();
        files.record(&mut last, format_args!("3")).unwrap();
        assert!(last.is_open());
    }

    #[test]
    fn numbers_are_listed_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["1", "22", "self", "-3", "99999999999", "4"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let mut files = Files::new("/none");
        let mut listed = |max| {
            let (found, over) = files.numbered(format_args!("{}", folder.path().display()), max).unwrap();
            let mut numbers: Vec<u32> = found.iter().map(|(number, _)| *number).collect();
            numbers.sort_unstable();
            (numbers, over)
        };
        assert_eq!(listed(10), (vec![1, 4, 22], 0));
        let (some, over) = listed(2);
        assert_eq!((some.len(), over), (2, 1));
        assert!(files.numbered(format_args!("1"), 10).is_err());
    }

    #[test]
    fn a_long_file_is_cut_after_a_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("long"), "0123456\n".repeat(200_000)).unwrap();
        let mut files = Files::new(folder.path().to_str().unwrap());
        let text = files.whole(format_args!("long")).unwrap();
        assert!(text.ends_with(b"0123456") && text.len() < 1 << 20 && text.len() > (1 << 20) - 20);
    }

    #[test]
    fn a_kept_file_of_a_process_that_ended_cannot_be_read() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut files = Files::new("/proc");
        let mut kept = KeptFile::default();
        assert!(files.record(&mut kept, format_args!("{}/stat", child.id())).is_ok());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(kept.is_open());
        assert!(files.record(&mut kept, format_args!("{}/stat", child.id())).is_err());
        assert!(!kept.is_open());
    }
}
