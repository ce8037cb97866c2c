//! The signals that ask a service to end: SIGTERM and SIGINT.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};

use crate::Error;

/// A future that is ready at the first SIGTERM or SIGINT from now on. Needs to be called within a tokio runtime.
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
