//! CPU time of the machine that programs outside a test use, read from `/proc` alone.
//!
//! Some tests measure: they hold only while nothing else uses the processors. What the product says about that is under
//! test itself, so it cannot be the judge; this reading is independent of it.

use std::fs;

/// The share of the machine's CPU time from which other programs make a measurement meaningless, 0 to 1.
pub const CROWDED_SHARE: f64 = 0.1;

/// The fields of `/proc/stat`'s first line that are time somebody used: user, nice, system, irq, softirq and steal.
/// Steal is time that the hypervisor gave to others. Guest time is part of user and nice.
const USED_FIELDS: [usize; 6] = [0, 1, 2, 5, 6, 7];

/// utime, stime, cutime and cstime of `/proc/self/stat`, counted from the state behind the command's name.
const OWN_FIELDS: std::ops::RangeInclusive<usize> = 11..=14;

/// A reading of the machine from the moment it was made.
#[derive(Debug, Clone, Copy)]
pub struct OtherPrograms {
    began: Reading,
}

/// CPU times in clock ticks, since boot or since this process began.
#[derive(Debug, Clone, Copy)]
struct Reading {
    machine_used: u64,
    machine_all: u64,
    own: u64,
}

impl OtherPrograms {
    /// Begins to watch.
    ///
    /// # Panics
    ///
    /// When `/proc` cannot be read, here and in [`OtherPrograms::share`].
    pub fn watch() -> Self {
        Self { began: Reading::now() }
    }

    /// The share of all processors' time since [`OtherPrograms::watch`] that neither this process nor children it waited
    /// for used, 0 to 1. Children that still run count as others.
    pub fn share(&self) -> f64 {
        self.began.others_until(&Reading::now())
    }

    /// Why a measurement made since [`OtherPrograms::watch`] means nothing, where other programs used
    /// [`CROWDED_SHARE`] or more.
    pub fn crowded(&self) -> Option<String> {
        let share = self.share();
        (share >= CROWDED_SHARE)
            .then(|| format!("other programs used {:.0} % of the machine's CPU time", share * 100.0))
    }
}

impl Reading {
    fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
        Self::parse(&read("/proc/stat"), &read("/proc/self/stat"))
    }

    fn parse(machine: &str, own: &str) -> Self {
        let first = machine.lines().next().unwrap_or("");
        let machine: Vec<u64> = numbers(first.strip_prefix("cpu").unwrap_or(""));
        let (_, own) = own.rsplit_once(')').unwrap_or(("", own));
        let own: Vec<&str> = own.split_whitespace().collect();
        Self {
            machine_used: USED_FIELDS.iter().filter_map(|field| machine.get(*field)).sum(),
            machine_all: machine.iter().take(8).sum(),
            own: own[OWN_FIELDS].iter().map(|field| field.parse::<u64>().unwrap_or(0)).sum(),
        }
    }

    fn others_until(&self, later: &Self) -> f64 {
        let used = later.machine_used.saturating_sub(self.machine_used);
        let others = used.saturating_sub(later.own.saturating_sub(self.own));
        let all = later.machine_all.saturating_sub(self.machine_all);
        if all == 0 { 0.0 } else { others as f64 / all as f64 }
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(cpu: &str, own: &str) -> Reading {
        Reading::parse(&format!("cpu  {cpu}\ncpu0 9 9\n"), &format!("7 (a ) b) R 1 1 1 0 -1 0 0 0 0 0 {own} 20 0 1"))
    }

    #[test]
    fn what_others_use_is_all_that_is_used_less_our_own() {
        let began = reading("100 0 100 1000 0 0 0 0 0 0", "10 10 0 0");
        // 400 ticks pass, 250 of them used, 150 of those by this process and its children.
        let ended = reading("200 10 120 1150 0 10 10 100 0 0", "60 20 80 10");
        assert_eq!(began.others_until(&ended), (250.0 - 150.0) / 400.0);
    }

    #[test]
    fn a_moment_without_a_tick_has_no_share() {
        let reading = reading("1 1 1 1 1 1 1 1 0 0", "1 1 1 1");
        assert_eq!(reading.others_until(&reading), 0.0);
    }

    #[test]
    fn this_machine_can_be_read() {
        let share = OtherPrograms::watch().share();
        assert!((0.0..=1.0).contains(&share), "{share}");
    }
}
