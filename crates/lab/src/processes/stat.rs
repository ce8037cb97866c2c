//! The fields of `/proc/PID/stat` that say whose a process is.

use std::io;

/// Fields of `/proc/PID/stat`; numbers and order as in proc(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// Its parent, field 4.
    pub(super) parent: i32,
    /// Its process group, field 5.
    pub(super) group: i32,
    /// Its session, field 6.
    pub(super) session: i32,
    /// Its terminal, field 7; 0 without.
    pub(super) terminal: i32,
    /// When it started, field 22, in clock ticks since boot.
    pub(super) started_ticks: u64,
}

impl Stat {
    /// Reads a process that need not be alive, but must not have been waited for.
    pub(super) fn read(pid: i32) -> io::Result<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Self::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it has too few fields"))
    }

    /// The name, field 2, stands in brackets and may itself hold blanks and brackets.
    fn parse(text: &str) -> Option<Self> {
        const FIRST: usize = 3;
        let fields = text.rsplit_once(") ")?.1.split_ascii_whitespace().collect::<Vec<_>>();
        let number = |field: usize| fields.get(field - FIRST)?.parse::<i32>().ok();
        Some(Self {
            parent: number(4)?,
            group: number(5)?,
            session: number(6)?,
            terminal: number(7)?,
            started_ticks: fields.get(22 - FIRST)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let line = "12 (a) R 9 (b) S 3 4 5 34816 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 0 9\n";
        let stat = Stat { parent: 3, group: 4, session: 5, terminal: 34816, started_ticks: 777 };
        assert_eq!(Stat::parse(line), Some(stat));
        for damaged in ["", "12 (a", "12 (a) S 3 4 5", "12 (a) S x 4 5 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 777"] {
            assert_eq!(Stat::parse(damaged), None, "{damaged}");
        }
    }
}
