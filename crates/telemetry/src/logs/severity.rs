//! Whether a record reports an error.
//!
//! Records of OpenTelemetry say how severe they are. Lines that a process printed say it in a member or pair of their
//! own, as a word in capitals before the message, or by beginning with an exception, as uncaught ones do.

use serde_json::Value;

use super::{looked_at, member, pair};

/// How the names of severities begin that stand for errors, in lower case: OpenTelemetry's, syslog's, `java.util.logging`'s.
const ERRORS: [&str; 9] = ["err", "fatal", "crit", "severe", "alert", "emerg", "panic", "dpanic", "failure"];
/// Members and keys that say how severe a line is.
const LEVELS: [&str; 5] = ["level", "severity", "lvl", "levelname", "log.level"];
/// From which number on bunyan's and pino's levels are errors.
const LEVEL_MIN: f64 = 50.0;
/// Words of a line that are looked at for a severity.
const WORDS_MAX: usize = 12;

/// Whether a record with this severity, perhaps none, and this text reports an error.
pub(crate) fn is_error(severity: &str, text: &str) -> bool {
    if !severity.is_empty() {
        return is_error_name(severity);
    }
    let text = looked_at(text);
    match member(text, &LEVELS) {
        Some(Value::String(level)) => return is_error_name(&level),
        Some(Value::Number(level)) => return level.as_f64().is_some_and(|level| level >= LEVEL_MIN),
        _ => {}
    }
    if let Some(level) = pair(text, &LEVELS) {
        return is_error_name(level);
    }
    let line = text.lines().next().unwrap_or_default();
    is_exception(line) || has_word(line)
}

fn is_error_name(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    ERRORS.iter().any(|error| name.starts_with(error))
}

/// A word in capitals near the beginning, perhaps in brackets or before a colon, that names a severity: `[ERROR]`.
fn has_word(line: &str) -> bool {
    let words = line.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 2).take(WORDS_MAX);
    // The first severity named is the line's own.
    let severity = words.into_iter().find(|word| {
        let is_capital = word.bytes().all(|byte| byte.is_ascii_uppercase());
        is_capital && (is_error_name(word) || ["INFO", "WARN", "WARNING", "DEBUG", "TRACE", "NOTICE"].contains(word))
    });
    severity.is_some_and(is_error_name)
}

/// The first line of an uncaught exception, such as `TypeError: x is not a function` or `panic: runtime error`.
fn is_exception(line: &str) -> bool {
    let Some((name, _)) = line.split_once(':') else { return false };
    let name = name.strip_prefix("Uncaught ").unwrap_or(name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$');
    let is_kind = name.ends_with("Error") || name.ends_with("Exception") || name == "panic";
    !name.is_empty() && name.chars().all(is_name) && is_kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_say_how_severe_they_are() {
        for (severity, expected) in
            [("ERROR", true), ("Error2", true), ("fatal", true), ("SEVERE", true), ("WARN", false), ("INFO", false)]
        {
            assert_eq!(is_error(severity, "ERROR in the text does not count"), expected, "{severity}");
        }
    }

    #[test]
    fn printed_lines_say_it_in_their_own_way() {
        for line in [
            "2026-11-24 10:00:00,123 ERROR [main] pool is empty",
            "[10:00:00 CRITICAL] disk",
            r#"{"level":"error","msg":"cannot connect"}"#,
            r#"{"level":50,"msg":"cannot connect"}"#,
            r#"time=10:00 level=error msg="cannot connect""#,
            "TypeError: x is not a function",
            "org.postgresql.util.PSQLException: FATAL: too many clients",
            "panic: runtime error: index out of range",
        ] {
            assert!(is_error("", line), "{line}");
        }
        for line in [
            "2026-11-24 10:00:00,123 INFO  retried after ERROR",
            "GET /errors 200",
            "no error so far",
            r#"{"level":"info","msg":"ERROR is a word"}"#,
            r#"{"level":30,"msg":"ERROR is a word"}"#,
            "Traceback (most recent call last):",
            "    at Object.<anonymous> (/app/error.js:3:9)",
            "",
            ":",
        ] {
            assert!(!is_error("", line), "{line}");
        }
    }
}
