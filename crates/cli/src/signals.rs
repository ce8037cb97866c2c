//! Ctrl-C, termination and a closed terminal: the first asks the run to end in order, the second ends it at once. The
//! guard ignores them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// A flag that the first signal sets. A second signal ends the process with exit code 2; the guard then ends services.
pub(crate) fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let ignored = ignored_signals();
    // Signals that this process has to ignore, as under nohup or as a script's background job, stay ignored.
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0) {
        // Registered first, so that it acts only once the flag is already set.
        signal_hook::flag::register_conditional_shutdown(signal, 2, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Makes this process ignore requests to end. Only `SIGKILL` and its own work end it then.
pub(crate) fn ignore() -> std::io::Result<()> {
    for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
        // The flag is never read: a handler lets reads that a signal interrupts go on.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// The signals this process ignores, as a bit mask: bit 0 is signal 1; 0 if the kernel does not report it.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
