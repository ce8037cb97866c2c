//! Standard error: where everything goes that is not a result. Nobody reading it is no reason to fail.

use std::io::Write;

/// Writes text as it is.
pub(crate) fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Writes a line.
pub(crate) fn say(line: &str) {
    write(&format!("{line}\n"));
}
