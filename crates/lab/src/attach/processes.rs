//! Processes that others started and that are only looked at.
//!
//! A process id is used again once its process has ended, so the time of its start is remembered beside it.

use std::fs;

/// A process to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObservedProcess {
    pub(super) service: String,
    pub(super) replica: u32,
    pub(super) pid: u32,
    start_ticks: u64,
}

impl ObservedProcess {
    /// `None` if there is no such process.
    pub(super) fn find(service: &str, replica: u32, pid: u32) -> Option<Self> {
        Some(Self { service: service.to_owned(), replica, pid, start_ticks: start_ticks(pid)? })
    }

    /// Whether the same process still runs.
    pub(super) fn is_alive(&self) -> bool {
        start_ticks(self.pid) == Some(self.start_ticks)
    }

    /// The program, without its arguments: those of others may hold secrets.
    pub(super) fn program(&self) -> Vec<String> {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
        let program = String::from_utf8_lossy(program).into_owned();
        if program.is_empty() { Vec::new() } else { vec![program] }
    }
}

/// When a process began, in ticks since the machine did; `None` if it is not there or has ended.
fn start_ticks(pid: u32) -> Option<u64> {
    const START_TIME: usize = 19;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in parentheses and may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    if matches!(fields.first().copied(), Some("Z" | "X") | None) {
        return None;
    }
    fields.get(START_TIME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_until_it_ends() {
        let own = ObservedProcess::find("web", 0, std::process::id()).unwrap();
        assert!(own.is_alive());
        assert_eq!(own.program().len(), 1);
        let other = ObservedProcess { start_ticks: own.start_ticks + 1, ..own };
        assert!(!other.is_alive(), "another process of the same id");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(ObservedProcess::find("web", 0, pid), None);
    }
}
