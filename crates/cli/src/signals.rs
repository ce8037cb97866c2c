//! Ctrl-C, termination and a closed terminal: the first asks the run to end in order, the second ends it at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that the first signal sets. A second signal ends the process with exit code 2; the guard then ends services.
pub(crate) fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Registered first, so that it acts only once the flag is already set.
        signal_hook::flag::register_conditional_shutdown(signal, 2, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
