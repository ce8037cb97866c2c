//! The signals that end a server: SIGTERM and SIGINT.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};

use crate::Error;

/// Ready at the first SIGTERM or SIGINT after this call; from then on neither ends the process by itself. Must be called
/// within a tokio runtime that has its drivers enabled.
///
/// # Errors
///
/// [`Error::Signals`] if the handlers cannot be set.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static, Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
