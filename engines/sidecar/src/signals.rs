//! The signals that ask a sidecar to end; what to do about them is for [`Sidecar::serve`](crate::Sidecar::serve).

use std::future::Future;
use std::pin::pin;

use tokio::signal::unix::{SignalKind, signal};

use crate::Error;

/// Done at the first SIGTERM or SIGINT after this call; from then on neither ends the process by itself.
///
/// Must be called within a tokio runtime that has its drivers enabled.
///
/// # Errors
///
/// [`Error::Signals`] if the system refuses to register a handler.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static, Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
    Ok(async move {
        let (terminate, interrupt) = (pin!(terminate.recv()), pin!(interrupt.recv()));
        tokio::select! {
            _ = terminate => (),
            _ = interrupt => (),
        }
    })
}
