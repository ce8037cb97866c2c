//! Dates in headers, `Tue, 01 Sep 2026 08:00:00 GMT`.

/// Seconds since 1970, `None` for a text that is no such date or lies before.
pub(crate) fn unix_s(date: &str) -> Option<u64> {
    let timestamp = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok()?;
    u64::try_from(timestamp.as_second()).ok()
}

/// The date for [`unix_s`] to read.
pub(crate) fn text(unix_s: u64) -> String {
    let second = i64::try_from(unix_s).ok().and_then(|second| jiff::Timestamp::from_second(second).ok());
    second.unwrap_or_default().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_they_are_read() {
        assert_eq!(text(1_493_254_272), "Thu, 27 Apr 2017 00:51:12 GMT");
    }

    #[test]
    fn dates_of_clients_are_read() {
        assert_eq!(unix_s("Thu, 27 Apr 2017 00:51:12 GMT"), Some(1_493_254_272));
        assert_eq!(unix_s("thu, 27 apr 2017 00:51:12 gmt"), Some(1_493_254_272));
        for text in ["", "yesterday", "Thu, 27 Apr 1917 00:51:12 GMT", "2017-04-27T00:51:12Z"] {
            assert_eq!(unix_s(text), None, "{text}");
        }
    }
}
