//! Readers of files of `/proc` and control groups, other than `stat`. Pure. Fields: proc(5), the kernel's documents
//! on control groups and pressure stall information.
//!
//! A figure in an unexpected form is absent, never an error: kernels differ in what they have.

/// Interfaces of a network namespace that are kept at most.
pub(super) const INTERFACES_MAX: usize = 16;

/// The number after a key at the start of a line, as in `MemAvailable:  1024 kB` or `nr_periods 3`.
pub(super) fn number(text: &[u8], key: &str) -> Option<u64> {
    let rest = lines(text).find_map(|line| {
        let rest = line.strip_prefix(key)?;
        rest.starts_with([':', ' ', '\t']).then_some(rest)
    })?;
    rest.trim_start_matches(':').split_ascii_whitespace().next()?.parse().ok()
}

/// The first number of a file, as in `memory.current`; `None` if it is `max`, `-1` or the like.
pub(super) fn first_number(text: &[u8]) -> Option<u64> {
    lines(text).next()?.split_ascii_whitespace().next()?.parse().ok()
}

/// `/proc/loadavg`: the average over one minute.
pub(super) fn load(text: &[u8]) -> Option<f64> {
    let load: f64 = lines(text).next()?.split_ascii_whitespace().next()?.parse().ok()?;
    (load.is_finite() && load >= 0.0).then_some(load)
}

/// `/proc/PID/limits`: the soft limit on open files; `None` if it is `unlimited`.
pub(super) fn open_files_limit(text: &[u8]) -> Option<u64> {
    let rest = lines(text).find_map(|line| line.strip_prefix("Max open files"))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// Bytes that a process had read from and written to block devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Disk {
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

/// `/proc/PID/io`.
pub(super) fn disk(text: &[u8]) -> Option<Disk> {
    Some(Disk { read_bytes: number(text, "read_bytes")?, written_bytes: number(text, "write_bytes")? })
}

/// Context switches of a thread since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Switches {
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
}

/// `/proc/PID/task/TID/status`.
pub(super) fn switches(text: &[u8]) -> Option<Switches> {
    Some(Switches {
        voluntary: number(text, "voluntary_ctxt_switches")?,
        involuntary: number(text, "nonvoluntary_ctxt_switches")?,
    })
}

/// Counts of the scheduler for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Schedule {
    /// Time on a processor, in nanoseconds.
    pub(super) run_ns: u64,
    /// Time ready to run and waiting for a processor, in nanoseconds.
    pub(super) wait_ns: u64,
    /// How often it was put on a processor.
    pub(super) times_run: u64,
}

/// `/proc/PID/task/TID/schedstat`: time on a processor, time waiting for one, and how often it was put on one.
pub(super) fn schedule(text: &[u8]) -> Option<Schedule> {
    let mut fields = lines(text).next()?.split_ascii_whitespace();
    let mut next = || fields.next()?.parse().ok();
    Some(Schedule { run_ns: next()?, wait_ns: next()?, times_run: next()? })
}

/// An interface's traffic since it came up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
}

/// `/proc/PID/net/dev`: the first [`INTERFACES_MAX`] interfaces through which anything went.
pub(super) fn interfaces(text: &[u8]) -> Vec<Interface> {
    // Names hold no spaces and no `/`, but may hold `:`; an alias never has figures of its own.
    let interface = |line: &str| {
        let (name, figures) = line.rsplit_once(": ").or_else(|| line.rsplit_once(':'))?;
        let mut figures = figures.split_ascii_whitespace();
        let received_bytes = figures.next()?.parse().ok()?;
        let sent_bytes = figures.nth(7)?.parse().ok()?;
        Some(Interface { name: name.trim().to_owned(), received_bytes, sent_bytes })
    };
    let used = |interface: &Interface| interface.received_bytes > 0 || interface.sent_bytes > 0;
    lines(text).filter_map(interface).filter(used).take(INTERFACES_MAX).collect()
}

/// How long tasks waited for a resource: the line "some" of a pressure file.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Pressure {
    /// Share of the last ten seconds, 0 to 1.
    pub(super) average: f64,
    /// Since boot or since the control group was made, in microseconds.
    pub(super) total_us: u64,
}

/// `/proc/pressure/*` and `*.pressure` of a control group.
pub(super) fn pressure(text: &[u8]) -> Option<Pressure> {
    let some = lines(text).find_map(|line| line.strip_prefix("some "))?;
    let value = |key: &str| some.split_ascii_whitespace().find_map(|pair| pair.strip_prefix(key));
    let percent: f64 = value("avg10=")?.parse().ok()?;
    let average = percent.is_finite().then_some((percent / 100.0).clamp(0.0, 1.0))?;
    Some(Pressure { average, total_us: value("total=")?.parse().ok()? })
}

/// Lines of a file, those that are text.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_stand_after_their_whole_key() {
        let text =
            b"voluntary: 1\nnr_periods 3\nnr_periods_x 9\nPss:\t 12 kB\nMemAvailable:   77 kB\nbad: x\nPss_Anon: 5\n";
        for (key, expected) in [
            ("nr_periods", Some(3)),
            ("Pss", Some(12)),
            ("MemAvailable", Some(77)),
            ("bad", None),
            ("Mem", None),
            ("", None),
        ] {
            assert_eq!(number(text, key), expected, "{key}");
        }
        let first =
            [(&b"12\n"[..], Some(12)), (b"max\n", None), (b"-1\n", None), (b"", None), (b"5 100000\n", Some(5))];
        for (text, expected) in first {
            assert_eq!(first_number(text), expected);
        }
    }

    #[test]
    fn files_of_a_process() {
        let io = b"rchar: 6976\nwchar: 3\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n";
        assert_eq!(disk(io), Some(Disk { read_bytes: 4096, written_bytes: 8192 }));
        let status = b"Name:\tsh\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(switches(status), Some(Switches { voluntary: 7, involuntary: 2 }));
        assert_eq!(switches(b"Name:\tsh\nvoluntary_ctxt_switches:\t7\n"), None);
        assert_eq!(schedule(b"81726 51 9\n"), Some(Schedule { run_ns: 81726, wait_ns: 51, times_run: 9 }));
        assert_eq!(schedule(b"81726 51\n"), None);
    }

    #[test]
    fn interfaces_that_carried_something() {
        let text = b"Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 10 1 0 0 0 0 0 0 11 1 0 0 0 0 0 0
  ifb0:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
eth0:1159565443   51433    0    0    0     0          0         0  4394109   36207    0    0    0     0       0          0
 bad: 1 2 3
";
        let interface =
            |name: &str, received_bytes, sent_bytes| Interface { name: name.into(), received_bytes, sent_bytes };
        assert_eq!(interfaces(text), [interface("lo", 10, 11), interface("eth0", 1_159_565_443, 4_394_109)]);
        let many: String = (0..100).map(|n| format!("veth{n}: 1 0 0 0 0 0 0 0 1 0\n")).collect();
        assert_eq!(interfaces(many.as_bytes()).len(), INTERFACES_MAX);
    }

    #[test]
    fn pressure_is_a_share() {
        let text = b"some avg10=5.33 avg60=5.10 avg300=6.01 total=6881225154\nfull avg10=99.00 avg60=0.00 total=0\n";
        assert_eq!(pressure(text), Some(Pressure { average: 5.33 / 100.0, total_us: 6_881_225_154 }));
        for text in [&b""[..], b"full avg10=1.00 total=2\n", b"some avg10=NaN total=1\n", b"some avg10=1.00\n"] {
            assert_eq!(pressure(text), None);
        }
        assert_eq!(load(b"1.37 0.99 1.08 1/102 9187\n"), Some(1.37));
        assert_eq!(load(b"nan 1 1\n"), None);
    }

    proptest! {
        #[test]
        fn random_texts_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[a-z0-9 :=._\n\t-]{0,200}") {
            for text in [bytes.as_slice(), text.as_bytes()] {
                number(text, "some");
                first_number(text);
                load(text);
                disk(text);
                switches(text);
                schedule(text);
                interfaces(text);
                pressure(&[b"some ", text].concat());
            }
        }
    }
}
