//! Process that holds a lock on a file, as the kernel lists it in `/proc/locks`.
//!
//! Reading it takes no lock and opens no file, so it disturbs no process: to try the lock would make a hub that
//! opens at that moment fail, and to close a file of SQLite's would drop this process's own locks on it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How a file is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    /// By `flock`.
    Flock,
    /// By `fcntl`, as SQLite does.
    Posix,
}

/// Readings of the list, at most, until the lock is found in one. The kernel hands a list of over a page out in pieces,
/// and a lock that is released between two of them moves the others along: one at the seam is left out.
const READINGS_MAX: u32 = 5;

/// The process that holds a lock for writing on a file; `None` if there is none or the kernel does not say.
pub(super) fn holder(path: &Path, sort: Sort) -> Option<u32> {
    let inode = path.metadata().ok()?.ino();
    (0..READINGS_MAX).find_map(|_| find(&std::fs::read_to_string("/proc/locks").ok()?, inode, sort))
}

/// A line is `1: FLOCK  ADVISORY  WRITE 4242 fe:01:131090 0 EOF`; of the device only the inode is compared, for what
/// lies under an overlay is listed with the device below it.
fn find(locks: &str, inode: u64, sort: Sort) -> Option<u32> {
    let sort = match sort {
        Sort::Flock => "FLOCK",
        Sort::Posix => "POSIX",
    };
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, found, _, "WRITE", process, place, ..] = words[..] else { return None };
        let found_inode: u64 = place.rsplit(':').next()?.parse().ok()?;
        // Process 0 is one of another namespace.
        let process = process.parse().ok().filter(|process| *process != 0)?;
        (found == sort && found_inode == inode).then_some(process)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_writes_is_found_and_one_that_waits_is_not() {
        let locks = "1: POSIX  ADVISORY  READ  11 fe:01:77 128 128\n\
                     2: FLOCK  ADVISORY  WRITE 22 fe:01:99 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 33 fe:01:77 0 EOF\n\
                     3: POSIX  ADVISORY  WRITE 44 fe:01:77 1073741826 1073742335\n\
                     4: FLOCK  ADVISORY  WRITE 0 fe:01:55 0 EOF\n";
        assert_eq!(find(locks, 77, Sort::Posix), Some(44));
        assert_eq!(find(locks, 99, Sort::Flock), Some(22));
        assert_eq!(find(locks, 77, Sort::Flock), None);
        assert_eq!(find(locks, 55, Sort::Flock), None);
    }

    #[test]
    fn a_lock_of_this_process_is_found_while_it_is_held() {
        use rustix::fs::{FlockOperation, flock};
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(holder(file.path(), Sort::Flock), None);
        flock(file.as_file(), FlockOperation::NonBlockingLockExclusive).expect("locked");
        assert_eq!(holder(file.path(), Sort::Flock), Some(std::process::id()));
    }
}
