//! How much is read at most, and what had to be left out. Over a limit figures are left out and counted, never guessed.

use std::io;
use std::time::Duration;

use super::files::is_denied;

/// How often the figures are read that cost more or matter less than CPU: at most this often, whatever the interval.
pub const DETAILS_INTERVAL: Duration = Duration::from_secs(1);
/// How often what is dear is read: shared memory, which walks page tables, and where control groups are.
pub const RARE_INTERVAL: Duration = Duration::from_secs(10);

/// How often what threads do is sampled. Not a multiple of the periods that timers usually have, so that a thread that
/// works every 10 or 100 ms is not always met at the same point.
pub const STATES_INTERVAL: Duration = Duration::from_millis(83);
/// Threads whose state is read in one sample: at most about 2,000 a second, some 0.5 % of a core. Where files may not stay
/// open, a third of it. Of more threads, others are read in the next sample, and each stands for several.
pub const STATES_MAX: usize = 160;

/// The least mean time between samples of the sockets.
pub const SOCKETS_INTERVAL: Duration = Duration::from_millis(47);
/// Share of a core that samples of the sockets may take: where one takes longer, they are further apart.
pub const SOCKETS_SHARE_MAX: f64 = 0.006;
/// Share of a core that full readings of the sockets may take, which learn whose they are: with many connections, they are
/// more than a second apart.
pub const SOCKETS_FULL_SHARE_MAX: f64 = 0.002;

/// Processes of the host that are looked at in one reading.
pub const HOST_PROCESSES_MAX: usize = 65_536;
/// Processes of replicas that are read in one reading.
pub const PROCESSES_MAX: usize = 4096;
/// Threads of replicas that are read in one reading.
pub const THREADS_MAX: usize = 16_384;
/// Descriptors that are counted one by one in one reading, where the kernel does not say how many there are.
pub const DESCRIPTORS_MAX: usize = 65_536;
/// Resident memory whose sharing is requested in one reading; the kernel walks all of it.
pub const PSS_BYTES_MAX: u64 = 16 << 30;

/// Omissions because of a limit, added up over readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Processes beyond [`HOST_PROCESSES_MAX`] or [`PROCESSES_MAX`].
    pub processes: u64,
    /// Control groups below watched ones, beyond 256 or deeper than 16.
    pub groups: u64,
    /// Threads beyond [`THREADS_MAX`].
    pub threads: u64,
    /// Processes whose descriptors went beyond [`DESCRIPTORS_MAX`].
    pub descriptors: u64,
    /// Processes whose memory went beyond [`PSS_BYTES_MAX`].
    pub pss: u64,
}

/// Figures that this user may not read of at least one process; its replica goes without that figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeniedFigures {
    /// `smaps_rollup`: proportional set size.
    pub pss: bool,
    /// `io`: bytes to and from disks.
    pub disk: bool,
    /// `fd`: open descriptors.
    pub descriptors: bool,
    /// `ns/net`: whether it has a network of its own.
    pub network: bool,
}

/// How much of a reading is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// CPU and resident memory.
    Quick,
    /// The details too.
    Details,
    /// And what is dear.
    Rare,
}

/// Budget that is left in this reading, and its omissions.
#[derive(Debug, Default)]
pub(super) struct Budget {
    pub(super) processes: usize,
    pub(super) threads: usize,
    pub(super) descriptors: usize,
    pub(super) pss_bytes: u64,
    pub(super) left_out: LeftOut,
    pub(super) denied: DeniedFigures,
}

impl Budget {
    /// A new reading.
    pub(super) fn refill(&mut self) {
        self.processes = PROCESSES_MAX;
        self.threads = THREADS_MAX;
        self.descriptors = DESCRIPTORS_MAX;
        self.pss_bytes = PSS_BYTES_MAX;
    }
}

/// Why a figure is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absence {
    /// The process ended, or this kernel has no such figure: the others' figures stand.
    Gone,
    /// This user may not read it, it is too much, or it is not due: the replica has no such figure.
    Unread,
}

impl Absence {
    /// Notes in `denied` when permission was lacking.
    pub(super) fn from(error: &io::Error, denied: &mut bool) -> Self {
        *denied |= is_denied(error);
        if is_denied(error) { Self::Unread } else { Self::Gone }
    }
}

/// The sum of a figure over processes; `None` if a process could not be read, or no process has it.
pub(super) fn sum(figures: impl IntoIterator<Item = Result<u64, Absence>>) -> Option<u64> {
    let mut sum = None;
    for figure in figures {
        match figure {
            Ok(value) => sum = Some(sum.unwrap_or(0_u64).saturating_add(value)),
            Err(Absence::Gone) => {}
            Err(Absence::Unread) => return None,
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_has_all_or_nothing() {
        let cases: [(&[_], _); 5] = [
            (&[Ok(1), Ok(2)], Some(3)),
            (&[Ok(1), Err(Absence::Gone)], Some(1)),
            (&[Ok(1), Err(Absence::Unread)], None),
            (&[Err(Absence::Gone)], None),
            (&[], None),
        ];
        for (figures, expected) in cases {
            assert_eq!(sum(figures.iter().copied()), expected, "{figures:?}");
        }
        let mut denied = false;
        assert_eq!(Absence::from(&io::ErrorKind::NotFound.into(), &mut denied), Absence::Gone);
        assert!(!denied);
        assert_eq!(Absence::from(&io::ErrorKind::PermissionDenied.into(), &mut denied), Absence::Unread);
        assert!(denied);
    }
}
