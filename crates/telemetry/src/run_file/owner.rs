//! Which process writes a run file, and whether it still lives.
//!
//! A process id alone is not enough, because ids are used again: the process's start time in clock ticks and the
//! machine's boot id are kept beside it. No lock is held on the file, since SQLite's own locks and a second lock on the
//! same file undo each other.

use std::fs;

/// A process, distinguished from every other process of this machine before and after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) pid: u32,
    pub(super) start_ticks: u64,
    pub(super) boot_id: String,
}

impl Owner {
    /// This process.
    pub(super) fn this_process() -> Self {
        let pid = std::process::id();
        Self { pid, start_ticks: start_ticks(pid).unwrap_or_default(), boot_id: boot_id() }
    }

    /// Whether the process still runs; a zombie does not.
    pub(super) fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && start_ticks(self.pid) == Some(self.start_ticks)
    }
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// When the process started, in clock ticks since boot; `None` if there is no such process or it is a zombie.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name, field 2, may hold spaces and parentheses: fields are counted from the last one.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends_and_its_id_alone_is_not_enough() {
        let me = Owner::this_process();
        assert!(me.is_alive());
        assert!(!Owner { start_ticks: me.start_ticks + 1, ..me.clone() }.is_alive());
        assert!(!Owner { boot_id: "another boot".into(), ..me.clone() }.is_alive());

        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = Owner { pid: child.id(), start_ticks: start_ticks(child.id()).unwrap(), boot_id: boot_id() };
        assert!(other.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!other.is_alive());
    }
}
