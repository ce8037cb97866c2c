//! Why a process goes on after a signal that was to end it, as far as `/proc/PID/status` says.

use rustix::process::Signal;

/// Programs that run other programs and leave signals to them.
const SHELLS: [&str; 6] = ["ash", "bash", "busybox", "dash", "sh", "zsh"];
const NAMES: [(Signal, &str); 4] =
    [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT"), (Signal::QUIT, "SIGQUIT"), (Signal::HUP, "SIGHUP")];

/// The name of a signal that services are stopped with.
pub(crate) fn name_of(signal: Signal) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == signal).map_or("the signal", |(_, name)| name)
}

/// Signal masks of a process. Masks have bit `n - 1` for signal `n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignalState {
    program: String,
    /// `R`, `S`, `D`, `T`, `Z` and the like, as in proc(5).
    state: char,
    ignored: u64,
    caught: u64,
    blocked: u64,
    /// Whether it is the first process of a PID namespace, for which the kernel drops signals without a handler.
    is_first: bool,
}

impl SignalState {
    /// Reads a process. None once it is gone.
    pub(crate) fn read(pid: i32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let value =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        let mask = |name: &str| u64::from_str_radix(value(name)?, 16).ok();
        // One number for each namespace, its own last.
        let numbers: Vec<&str> = value("NSpid").unwrap_or_default().split_whitespace().collect();
        Some(Self {
            program: value("Name")?.to_owned(),
            state: value("State")?.chars().next()?,
            ignored: mask("SigIgn")?,
            caught: mask("SigCgt")?,
            blocked: mask("SigBlk")?,
            is_first: numbers.len() > 1 && numbers.last() == Some(&"1"),
        })
    }

    /// The likely reason why a signal did not end it, in a clause.
    pub(crate) fn reason(&self, signal: Signal) -> String {
        let (program, name) = (&self.program, name_of(signal));
        let is_in = |mask: u64| mask & (1 << (signal.as_raw() - 1)) != 0;
        let is_shell = SHELLS.contains(&program.as_str());
        match () {
            () if self.state == 'T' => format!("{program} is paused, and handles signals only when it goes on"),
            () if is_in(self.ignored) => format!("{program} ignores {name}"),
            () if is_in(self.blocked) => format!("{program} blocks {name}"),
            () if is_in(self.caught) && is_shell => {
                format!(
                    "{program} handles {name} only after the program that it runs has ended; start that with `exec`"
                )
            }
            () if is_in(self.caught) => format!("{program} handles {name} and had not finished"),
            () if self.is_first && is_shell => format!(
                "{program} is process 1 of a container, where a shell neither ends on {name} nor passes it on; start the \
                 program with `exec`"
            ),
            () if self.is_first => format!(
                "{program} is process 1 of a container and has no handler for {name}, without which the kernel drops it"
            ),
            () if self.state == 'D' => format!("{program} waits for a device, which signals do not interrupt"),
            () => format!("{program} shows no reason"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(program: &str, [ignored, blocked, caught]: [u64; 3], numbers: &str) -> SignalState {
        let text = format!(
            "Name:\t{program}\nState:\tS (sleeping)\nNSpid:\t{numbers}\nSigPnd:\t0000000000000000\nSigBlk:\t{blocked:016x}\n\
             SigIgn:\t{ignored:016x}\nSigCgt:\t{caught:016x}\n"
        );
        SignalState::parse(&text).unwrap()
    }

    #[test]
    fn the_reason_follows_from_the_masks_and_the_namespace() {
        const TERM: u64 = 1 << 14;
        let others = !TERM;
        for (program, masks, numbers, reason) in [
            ("shop", [TERM, 0, 0], "77", "shop ignores SIGTERM"),
            ("shop", [others, TERM, others], "77", "shop blocks SIGTERM"),
            ("shop", [0, 0, TERM], "77", "shop handles SIGTERM and had not finished"),
            (
                "sh",
                [0, 0, TERM],
                "77",
                "sh handles SIGTERM only after the program that it runs has ended; start that with `exec`",
            ),
            (
                "sh",
                [0, 0, others],
                "77\t1",
                "sh is process 1 of a container, where a shell neither ends on SIGTERM nor passes it on; start the program \
                 with `exec`",
            ),
            (
                "shop",
                [0, 0, 0],
                "77\t1",
                "shop is process 1 of a container and has no handler for SIGTERM, without which the kernel drops it",
            ),
            ("shop", [0, 0, 0], "1", "shop shows no reason"),
        ] {
            assert_eq!(status(program, masks, numbers).reason(Signal::TERM), reason);
        }
        let paused = SignalState { state: 'T', ..status("shop", [0; 3], "77") };
        assert_eq!(paused.reason(Signal::TERM), "shop is paused, and handles signals only when it goes on");
    }

    #[test]
    fn a_process_is_read_and_one_that_is_gone_is_not() {
        let own = SignalState::read(std::process::id() as i32).unwrap();
        assert!(!own.program.is_empty() && !own.is_first, "{own:?}");
        assert_eq!(SignalState::read(0), None);
        assert_eq!(SignalState::parse("Name:\tx\n"), None);
    }
}
