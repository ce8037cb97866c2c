//! Notes of tests that `./test` counts: one line each, tab-separated: kind, test, reason.

use std::fs::OpenOptions;
use std::io::Write;

/// Names the file that collects the notes.
const NOTES: &str = "NARROWS_TEST_NOTES";

/// Reports that the running test, or the part of it that `reason` names, was skipped. The caller returns after it.
pub fn skip(reason: &str) {
    note("skipped", reason);
}

/// Reports that the running test failed in a way it allows for, for `reason`, and begins again.
pub fn retry(reason: &str) {
    note("retried", reason);
}

fn note(kind: &str, reason: &str) {
    let line = line(kind, &test_name(), reason);
    let _ = std::io::stderr().write_all(line.as_bytes());
    let Some(path) = std::env::var_os(NOTES) else { return };
    let file = OpenOptions::new().append(true).create(true).open(&path);
    // One write, so that lines of tests that run side by side stay whole.
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "cannot write {NOTES}={}: {written:?}", path.display());
}

fn line(kind: &str, test: &str, reason: &str) -> String {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{kind}\t{test}\t{reason}\n")
}

/// The test's name: cargo-nextest's variable, or that of the thread the standard harness runs it in.
fn test_name() -> String {
    let named = std::env::var("NEXTEST_TEST_NAME").ok();
    named.or_else(|| std::thread::current().name().map(str::to_owned)).unwrap_or_else(|| "a test".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_line_with_three_fields() {
        assert_eq!(line("skipped", "a::b", "no\tserver\nhere"), "skipped\ta::b\tno server here\n");
    }

    #[test]
    fn the_running_test_is_named() {
        assert!(test_name().ends_with("the_running_test_is_named"), "{}", test_name());
    }
}
