//! Which process has a socket open: the links in `/proc/PID/fd`.
//!
//! They are looked at only when a socket is new, and then only at descriptors that are new or whose socket was closed:
//! a program that opens a connection for each call has the next one at the number of the one before.

use std::collections::{HashMap, HashSet};

use crate::files::Files;

/// Descriptors of a process that are looked at, the lowest.
const DESCRIPTORS_MAX: usize = 4096;

/// Inode of descriptors that are no sockets; no socket has it.
const NO_SOCKET: u64 = 0;

/// Knowledge of a socket from the kernel's dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    Open,
    Closed,
    /// In no dump so far: not TCP, no socket at all, or in a state that dumps leave out.
    Unlisted,
}

/// Open descriptors of the watched processes.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// By process and descriptor.
    descriptors: HashMap<u32, HashMap<u32, Descriptor>>,
    /// By inode, the processes.
    sockets: HashMap<u64, Vec<u32>>,
    /// The number of full readings.
    reading: u64,
}

#[derive(Debug, Clone, Copy)]
struct Descriptor {
    inode: u64,
    /// Full reading after which it was looked at.
    reading: u64,
}

impl Owners {
    /// The processes that had a socket open when they were last looked at.
    pub(super) fn of(&self, inode: u64) -> &[u32] {
        self.sockets.get(&inode).map_or(&[], Vec::as_slice)
    }

    /// From now on, descriptors are looked at again whose socket is unlisted.
    pub(super) fn next_reading(&mut self) {
        self.reading += 1;
    }

    /// Looks at the descriptors of these processes. `listing` is of the socket with an inode.
    pub(super) fn look(&mut self, files: &mut Files, pids: &HashSet<u32>, listing: impl Fn(u64) -> Listing) {
        self.descriptors.retain(|pid, _| pids.contains(pid));
        self.sockets.clear();
        for pid in pids {
            let before = self.descriptors.remove(pid).unwrap_or_default();
            let (listed, _) = files.numbered(format_args!("{pid}/fd"), DESCRIPTORS_MAX).unwrap_or_default();
            let mut now = HashMap::with_capacity(listed.len());
            for (number, _) in listed {
                let is_known = |known: &&Descriptor| match listing(known.inode) {
                    Listing::Open => true,
                    Listing::Closed => false,
                    Listing::Unlisted => known.reading == self.reading,
                };
                let descriptor = before.get(&number).filter(is_known).copied().unwrap_or_else(|| {
                    let link = files.link(format_args!("{pid}/fd/{number}")).unwrap_or_default();
                    Descriptor { inode: socket_inode(&link).unwrap_or(NO_SOCKET), reading: self.reading }
                });
                if descriptor.inode != NO_SOCKET {
                    self.sockets.entry(descriptor.inode).or_default().push(*pid);
                }
                now.insert(number, descriptor);
            }
            self.descriptors.insert(*pid, now);
        }
    }
}

/// The inode of a descriptor's link such as `socket:[12345]`.
pub(crate) fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tree::Tree;

    #[test]
    fn only_new_descriptors_and_those_of_closed_sockets_are_looked_at() {
        let tree = Tree::new();
        tree.link("7/fd/3", "socket:[11]");
        tree.link("7/fd/4", "pipe:[9]");
        let (mut files, mut owners, pids) = (tree.files(), Owners::default(), HashSet::from([7]));
        owners.look(&mut files, &pids, |_| Listing::Open);
        assert_eq!((owners.of(11), owners.of(12)), (&[7][..], &[][..]));
        for (path, target) in [("7/fd/3", "socket:[12]"), ("7/fd/4", "socket:[13]"), ("7/fd/5", "socket:[14]")] {
            if path != "7/fd/5" {
                tree.remove(path);
            }
            tree.link(path, target);
        }
        let unlisted = |inode| if inode == NO_SOCKET { Listing::Unlisted } else { Listing::Open };
        owners.look(&mut files, &pids, unlisted);
        assert_eq!([11, 12, 13, 14].map(|inode| owners.of(inode).len()), [1, 0, 0, 1], "known descriptors are kept");
        owners.look(&mut files, &pids, |inode| if inode == 11 { Listing::Closed } else { unlisted(inode) });
        assert_eq!([11, 12, 13, 14].map(|inode| owners.of(inode).len()), [0, 1, 0, 1], "the socket was closed");
        owners.next_reading();
        owners.look(&mut files, &pids, unlisted);
        assert_eq!([11, 12, 13, 14].map(|inode| owners.of(inode).len()), [0, 1, 1, 1], "files are looked at again");
    }
}
