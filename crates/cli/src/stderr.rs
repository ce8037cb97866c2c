//! Standard error: everything that is not a result goes here. A closed standard error is not a failure.
//!
//! This module knows the secrets of the running experiment. It redacts them, and the secrets of every URL, in
//! everything it writes, because messages quote commands, URLs and the output of programs. It replaces terminal control
//! characters; only [`draw`] writes control sequences, and those are Narrows' own.

use std::io::Write;
use std::sync::OnceLock;

use narrows_model::printable;
use narrows_telemetry::secrets::{KnownSecrets, redact_addresses};

static SECRETS: OnceLock<KnownSecrets> = OnceLock::new();

/// Has these values blanked from now on. Only the first call counts: a process reads one experiment.
pub(crate) fn hide(secrets: KnownSecrets) {
    SECRETS.get_or_init(|| secrets);
}

/// Writes text without secrets and control characters.
pub(crate) fn write(text: &str) {
    draw("", text);
}

/// Writes a control sequence, then a text as [`write()`] does.
pub(crate) fn draw(sequence: &str, text: &str) {
    let mut text = printable::lines(text).into_owned();
    redact_addresses(&mut text);
    if let Some(secrets) = SECRETS.get() {
        secrets.hide(&mut text);
    }
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(format!("{sequence}{text}").as_bytes()).and_then(|()| stderr.flush());
}

/// Writes a line.
pub(crate) fn say(line: &str) {
    write(&format!("{line}\n"));
}
