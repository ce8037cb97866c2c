//! `grpc-timeout`: how long the caller waits.
//!
//! When the timeout expires the call gets a response, although its caller no longer waits, so that its slot is free for
//! another call. What is queued by then is kept all the same.

use std::time::Duration;

use hyper::HeaderMap;

use crate::otlp::export::{Refusal, Why};

const DIGITS_MAX: usize = 8;

/// `None` if the caller sets no timeout.
pub(super) fn from_headers(headers: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
    let duration = value.to_str().ok().and_then(parse);
    duration.map(Some).ok_or_else(|| {
        let message = format!("grpc-timeout {value:?} is not up to eight digits and a unit (H, M, S, m, u or n)");
        Refusal::new(Why::Malformed, message)
    })
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = (1..=DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_read_as_grpc_writes_them() {
        let cases = [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("10S", Some(Duration::from_secs(10))),
            ("99999999m", Some(Duration::from_millis(99_999_999))),
            ("5u", Some(Duration::from_micros(5))),
            ("0n", Some(Duration::ZERO)),
            ("", None),
            ("S", None),
            ("123456789S", None),
            ("+1S", None),
            ("1s", None),
            ("1é", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }
}
