//! Standard error: where everything goes that is not a result. Nobody reading it is no reason to fail.
//!
//! It knows the secrets of the experiment that runs and redacts them in all that it writes: messages quote commands and
//! what programs printed.

use std::io::Write;
use std::sync::OnceLock;

use narrows_telemetry::secrets::Known;

static SECRETS: OnceLock<Known> = OnceLock::new();

/// Has these values blanked from now on. Only the first call counts: a process reads one experiment.
pub(crate) fn hide(secrets: Known) {
    SECRETS.get_or_init(|| secrets);
}

/// Writes text as it is, but for secrets.
pub(crate) fn write(text: &str) {
    let hidden = SECRETS.get().filter(|secrets| !secrets.is_empty()).map(|secrets| secrets.hidden(text));
    let text = hidden.as_deref().unwrap_or(text);
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Writes a line.
pub(crate) fn say(line: &str) {
    write(&format!("{line}\n"));
}
