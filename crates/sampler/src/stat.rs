//! Lines of `/proc/PID/stat`, `/proc/PID/task/TID/stat` and `/proc/stat`. Fields: proc(5).

/// A process or thread, distinguished from a later one with the same number by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TaskId {
    /// When it started, in clock ticks since boot.
    pub(super) started_ticks: u64,
    pub(super) id: u32,
}

/// Figures of a process or thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TaskStat {
    /// The parent process.
    pub(super) parent: u32,
    /// The session's leader.
    pub(super) session: u32,
    pub(super) own: Cpu,
    /// Of children that ended and were waited for, and of theirs.
    pub(super) reaped: Cpu,
    /// Threads of the process.
    pub(super) threads: u64,
    /// When it started, in clock ticks since boot. With the id it names a process or thread for good.
    pub(super) started_ticks: u64,
    /// Resident memory, in pages.
    pub(super) resident_pages: u64,
}

/// CPU time in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cpu {
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
}

impl TaskStat {
    /// Who it is, given its number.
    pub(super) fn id(&self, id: u32) -> TaskId {
        TaskId { started_ticks: self.started_ticks, id }
    }
}

impl Cpu {
    pub(super) fn ticks(self) -> u64 {
        self.user_ticks.saturating_add(self.system_ticks)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            user_ticks: self.user_ticks.saturating_add(other.user_ticks),
            system_ticks: self.system_ticks.saturating_add(other.system_ticks),
        }
    }

    /// Its growth; a part that fell counts as nothing.
    pub(super) fn since(self, then: Self) -> Self {
        Self {
            user_ticks: self.user_ticks.saturating_sub(then.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(then.system_ticks),
        }
    }
}

/// Reads a process's or thread's line: its name and the rest; `None` if it is no such line.
///
/// The name is what stands between the first `(` and the last `)`: it may hold spaces, parentheses and line ends.
pub(super) fn task(line: &[u8]) -> Option<(&[u8], TaskStat)> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let name = line.get(open + 1..close)?;
    let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
    // proc(5) numbers fields from 1; the first after the name, the state, is number 3.
    let mut fields = Fields { rest: rest.split_ascii_whitespace(), next: 3 };
    let stat = TaskStat {
        parent: u32::try_from(fields.number(4)?).ok()?,
        session: u32::try_from(fields.number(6)?).ok()?,
        own: Cpu { user_ticks: fields.number(14)?, system_ticks: fields.number(15)? },
        reaped: Cpu { user_ticks: fields.number(16)?, system_ticks: fields.number(17)? },
        threads: fields.number(20)?,
        started_ticks: fields.number(22)?,
        resident_pages: fields.number(24)?,
    };
    Some((name, stat))
}

/// The letter of a process's or thread's state, such as `D` for an uninterruptible sleep.
pub(super) fn state(line: &[u8]) -> Option<u8> {
    let close = line.iter().rposition(|byte| *byte == b')')?;
    line.get(close + 2).copied()
}

/// Fields of a line, taken in rising order.
struct Fields<'a> {
    rest: std::str::SplitAsciiWhitespace<'a>,
    next: usize,
}

impl Fields<'_> {
    /// A field that is not negative; the kernel writes −1 in fields of processes that are going, which is taken as 0.
    fn number(&mut self, field: usize) -> Option<u64> {
        let text = self.rest.nth(field - self.next)?;
        self.next = field + 1;
        if text.starts_with('-') { Some(0) } else { text.parse().ok() }
    }
}

/// The number of the process that a line is about, as the mount of `/proc` numbers it.
pub(super) fn own_number(line: &[u8]) -> Option<u32> {
    std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?.parse().ok()
}

/// CPU time of the host since boot, in clock ticks over all processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct HostStat {
    /// Nothing to do, or waiting for a disk.
    pub(super) idle_ticks: u64,
    /// Taken by the hypervisor.
    pub(super) steal_ticks: u64,
    /// All of it.
    pub(super) total_ticks: u64,
}

/// Reads the first line of `/proc/stat`; `None` if it is no such line.
pub(super) fn host(text: &[u8]) -> Option<HostStat> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    let values = std::str::from_utf8(line).ok()?.strip_prefix("cpu ")?;
    // user nice system idle iowait irq softirq steal; guest and guest_nice after them are part of user and nice.
    let mut ticks = [0; 8];
    let mut count = 0;
    for (slot, text) in ticks.iter_mut().zip(values.split_ascii_whitespace()) {
        *slot = text.parse().ok()?;
        count += 1;
    }
    let total_ticks = ticks.iter().try_fold(0_u64, |sum, ticks| sum.checked_add(*ticks))?;
    (count >= 4).then_some(HostStat { idle_ticks: ticks[3] + ticks[4], steal_ticks: ticks[7], total_ticks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REST: &str = "S 1 42 41 0 -1 4194560 12 7 0 0 10 5 3 2 20 0 1 0 9000 2621440 250 18446744073709551615 1 1";

    #[test]
    fn names_may_hold_anything() {
        for name in ["bash", "tokio worker", "a) S 9 9 (b", "((()))", "", "x\ny", ") R 1 2"] {
            let line = format!("42 ({name}) {REST}\n");
            let (got, stat) = task(line.as_bytes()).unwrap();
            assert_eq!(got, name.as_bytes());
            let expected = TaskStat {
                parent: 1,
                session: 41,
                own: Cpu { user_ticks: 10, system_ticks: 5 },
                reaped: Cpu { user_ticks: 3, system_ticks: 2 },
                threads: 1,
                started_ticks: 9000,
                resident_pages: 250,
            };
            assert_eq!(stat, expected, "{name}");
        }
        assert!(task(&[b"42 (\xff\xfe) ", REST.as_bytes()].concat()).is_some());
    }

    #[test]
    fn lines_that_are_cut_short_are_no_lines() {
        let line = format!("42 (bash) {REST}");
        let enough = line.find(" 18446744073709551615").unwrap();
        for end in 0..line.rfind(" 250").unwrap() + 1 {
            assert_eq!(task(&line.as_bytes()[..end]), None, "{end}");
        }
        assert!(task(&line.as_bytes()[..enough]).is_some());
    }

    #[test]
    fn the_hosts_line_is_read_on_old_and_new_kernels() {
        let new = b"cpu  100 5 50 800 40 1 2 7 90 0\ncpu0 1 2 3 4\n";
        assert_eq!(host(new), Some(HostStat { idle_ticks: 840, steal_ticks: 7, total_ticks: 1005 }));
        assert_eq!(host(b"cpu 1 2 3 4"), Some(HostStat { idle_ticks: 4, steal_ticks: 0, total_ticks: 10 }));
        for text in
            [&b""[..], b"cpu ", b"cpu 1 2 3", b"cpu0 1 2 3 4", b"cpu 1 2 3 x", b"cpu 18446744073709551615 1 1 1"]
        {
            assert_eq!(host(text), None);
        }
    }

    #[test]
    fn this_process_can_be_read() {
        let (name, stat) = task(&std::fs::read("/proc/thread-self/stat").unwrap()).map(|(n, s)| (n.len(), s)).unwrap();
        assert!(name > 0 && stat.parent > 0 && stat.resident_pages > 0 && stat.started_ticks > 0);
        assert!(host(&std::fs::read("/proc/stat").unwrap()).is_some());
    }

    proptest! {
        #[test]
        fn random_lines_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), tail in "[ 0-9()-]{0,200}") {
            let line = [bytes.as_slice(), b"(", tail.as_bytes()].concat();
            task(&line);
            host(&[b"cpu ", tail.as_bytes()].concat());
        }
    }
}
