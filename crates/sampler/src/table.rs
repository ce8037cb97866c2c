//! All processes of the host, and which of them make up a replica.
//!
//! Whose child a process is and in which session stands nowhere but in its `stat`. That is read of every process once;
//! after that, at each reading, only of members of replicas and of orphans: a stranger does not become a member by
//! itself. A number that is used again shows by the inode of its directory, which the kernel makes anew; and every
//! [`REREAD_EVERY`] readings everything is read again, should that not hold.

use std::collections::{HashMap, HashSet};

use super::files::{Files, KeptFile};
use super::limits::HOST_PROCESSES_MAX;
use super::stat::{self, TaskStat};

/// Readings from one reading of all processes to the next.
const REREAD_EVERY: u32 = 60;

/// All processes there are, by number.
#[derive(Debug, Default)]
pub(super) struct Table {
    known: HashMap<u32, KnownTask>,
    readings: u32,
}

#[derive(Debug)]
struct KnownTask {
    inode: u64,
    /// None once it could not be read.
    stat: Option<TaskStat>,
    file: KeptFile,
    is_member: bool,
}

impl Table {
    /// Looks for new and ended processes and reads what may have changed. Says how many processes came beyond the limit.
    /// Without the list of processes nothing is known of any.
    pub(super) fn refresh(&mut self, files: &mut Files) -> u64 {
        let (listed, over) = files.numbered(format_args!(""), HOST_PROCESSES_MAX).unwrap_or_default();
        let present: HashMap<u32, u64> = listed.into_iter().collect();
        let mut ended = HashSet::new();
        self.known.retain(|pid, known| {
            let is_same = present.get(pid) == Some(&known.inode);
            if !is_same {
                ended.insert(*pid);
            }
            is_same
        });
        let all_again = self.readings.is_multiple_of(REREAD_EVERY);
        self.readings = self.readings.wrapping_add(1);
        for (pid, inode) in present {
            let known = self.known.entry(pid).or_insert_with(|| KnownTask::new(inode));
            let is_orphan = || known.stat.is_none_or(|stat| ended.contains(&stat.parent));
            if known.is_member || all_again || is_orphan() {
                known.read(files, pid);
            }
        }
        over
    }

    /// A process that is there.
    pub(super) fn get(&self, pid: u32) -> Option<&TaskStat> {
        self.known.get(&pid)?.stat.as_ref()
    }

    /// Keeps the files of members open, and of nothing else.
    pub(super) fn set_members(&mut self, is_member: impl Fn(u32) -> bool) {
        for (pid, known) in &mut self.known {
            known.is_member = is_member(*pid);
            if !known.is_member {
                known.file = KeptFile::default();
            }
        }
    }

    /// Of each root: itself, its descendants, and all of its session if it leads one, even when it is gone itself.
    pub(super) fn members(&self, roots: &HashSet<u32>) -> HashMap<u32, Vec<u32>> {
        let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
        for pid in self.known.keys() {
            let mut add = |root: u32| {
                if roots.contains(&root) {
                    let of_root = members.entry(root).or_default();
                    if of_root.last() != Some(pid) {
                        of_root.push(*pid);
                    }
                }
            };
            let mut at = *pid;
            // Parents that change while /proc is read could form a ring; no chain is longer than there are processes.
            for _ in 0..=self.known.len() {
                let Some(stat) = self.get(at) else { break };
                add(at);
                add(stat.session);
                at = stat.parent;
            }
        }
        members
    }
}

impl KnownTask {
    fn new(inode: u64) -> Self {
        Self { inode, stat: None, file: KeptFile::default(), is_member: false }
    }

    fn read(&mut self, files: &mut Files, pid: u32) {
        let mut passing = KeptFile::default();
        let file = if self.is_member { &mut self.file } else { &mut passing };
        let line = files.record(file, format_args!("{pid}/stat"));
        self.stat = line.ok().and_then(stat::task).map(|(_, stat)| stat);
        if self.stat.is_none() {
            // No directory has this inode: should the number be listed again, it is looked at afresh.
            self.inode = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tree::Tree;

    #[test]
    fn a_replica_is_its_root_its_descendants_and_its_session() {
        // (pid, parent, session)
        let rows = [
            (1, 0, 1),
            (10, 1, 10),  // a root that leads its session
            (11, 10, 10), // its child
            (12, 11, 12), // a grandchild in a session of its own
            (13, 1, 10),  // a daemon that stayed in the session
            (14, 13, 14), // and its child in another
            (20, 1, 5),   // a root in somebody else's session
            (21, 20, 5),
            (22, 1, 5), // a stranger in that session
            (30, 31, 30),
            (31, 30, 31), // a ring
        ];
        let stat = |parent, session| Some(TaskStat { parent, session, ..TaskStat::default() });
        let known = |(pid, parent, session)| (pid, KnownTask { stat: stat(parent, session), ..KnownTask::new(1) });
        let mut table = Table { known: rows.map(known).into_iter().collect(), readings: 1 };
        let cases =
            [(10, vec![10, 11, 12, 13, 14]), (20, vec![20, 21]), (12, vec![12]), (31, vec![30, 31]), (99, vec![])];
        let members = |table: &Table, root| {
            let mut members = table.members(&HashSet::from([root, 10, 31])).remove(&root).unwrap_or_default();
            members.sort_unstable();
            members
        };
        for (root, expected) in cases {
            assert_eq!(members(&table, root), expected, "{root}");
        }
        table.known.remove(&10);
        assert_eq!(members(&table, 10), [11, 12, 13, 14]);
    }

    #[test]
    fn strangers_are_read_once_members_and_orphans_again() {
        let tree = Tree::new();
        let mut files = tree.files();
        for (pid, parent) in [(1, 0), (10, 1), (20, 1), (21, 20)] {
            tree.process(pid, &format!("S {parent} {pid} {pid} 0 0 0 0 0 0 0 1 0 0 0 20 0 1 0 5 0 9"));
        }
        let mut table = Table { readings: 1, ..Table::default() };
        table.refresh(&mut files);
        table.set_members(|pid| pid == 10);
        for (pid, parent) in [(1, 0), (10, 1), (20, 10), (21, 1)] {
            tree.process(pid, &format!("S {parent} {pid} {pid} 0 0 0 0 0 0 0 7 0 0 0 20 0 1 0 5 0 9"));
        }
        table.refresh(&mut files);
        let used = |table: &Table, pid| table.get(pid).map(|stat| stat.own.user_ticks);
        assert_eq!((used(&table, 1), used(&table, 10), used(&table, 20)), (Some(1), Some(7), Some(1)));
        tree.remove("20");
        table.refresh(&mut files);
        assert_eq!((used(&table, 20), used(&table, 21)), (None, Some(7)));
    }
}
