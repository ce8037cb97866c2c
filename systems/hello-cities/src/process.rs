//! Figures of the kernel about this process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Error;

const STATUS: &str = "/proc/self/status";

/// Processor time used so far, user and system, all threads.
pub(crate) fn cpu_time() -> Duration {
    // The kernel's clock is never negative.
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// The most memory that was resident so far, in bytes.
pub(crate) fn memory_bytes_peak() -> Result<u64, Error> {
    let status = std::fs::read_to_string(STATUS).map_err(|_| Error::Process(STATUS))?;
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map(|kib: u64| kib * 1024).ok_or(Error::Process(STATUS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_time_and_memory() {
        let before = cpu_time();
        while cpu_time() == before {}
        assert!(memory_bytes_peak().unwrap() > 100_000);
    }
}
