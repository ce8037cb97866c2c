//! The date in a cookie's `Expires` (RFC 6265, 5.1.1), which servers write in many ways.

const MONTHS: [&[u8]; 12] =
    [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
const SECONDS_PER_DAY: i64 = 86_400;

/// The date as Unix seconds; `None` if it is not one.
pub(super) fn parse(value: &[u8]) -> Option<i64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in value.split(|byte| is_delimiter(*byte)).filter(|token| !token.is_empty()) {
        if time.is_none()
            && let Some(found) = clock_time(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = number(token, 1, 2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_of(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = number(token, 2, 4)
        {
            year = Some(full_year(found));
        }
    }
    let (time, day, month, year) = (time?, day?, month?, year?);
    let is_date = (1..=31).contains(&day) && year >= 1601;
    is_date.then(|| days_since_1970(year, month, day) * SECONDS_PER_DAY + time)
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'/' | b';'..=b'@' | b'['..=b'`' | b'{'..=b'~')
}

/// A number of so many digits at the beginning of a token, followed by no digit.
fn number(token: &[u8], digits_min: usize, digits_max: usize) -> Option<i64> {
    let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let fits = (digits_min..=digits_max).contains(&digits);
    fits.then(|| token[..digits].iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// `hh:mm:ss` as seconds.
fn clock_time(token: &[u8]) -> Option<i64> {
    let mut parts = token.splitn(3, |byte| *byte == b':').map(|part| (part, number(part, 1, 2)));
    let mut whole = || parts.next().and_then(|(part, value)| if part.len() <= 2 { value } else { None });
    let (hour, minute) = (whole()?, whole()?);
    let second = parts.next()?.1?;
    (hour <= 23 && minute <= 59 && second <= 59).then_some(hour * 3_600 + minute * 60 + second)
}

fn month_of(token: &[u8]) -> Option<i64> {
    let name = token.get(..3)?;
    MONTHS.iter().position(|month| name.eq_ignore_ascii_case(month)).map(|index| index as i64 + 1)
}

fn full_year(year: i64) -> i64 {
    match year {
        70..=99 => year + 1900,
        0..=69 => year + 2000,
        _ => year,
    }
}

/// The Gregorian calendar, by years that begin in March, so that the leap day is their last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::parse;
    use proptest::prelude::*;

    #[test]
    fn dates_are_read_as_servers_write_them() {
        let cases: [(&str, Option<i64>); 13] = [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("6 november 94 8:49:37", Some(784_111_777)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(253_402_300_799)),
            ("Wed, 01 Jan 1601 00:00:00 GMT", Some(-11_644_473_600)),
            ("Sun, 06 Nov 1994 24:00:00 GMT", None),
            ("Sun, 06 Nov 1600 08:49:37 GMT", None),
            ("Sun, 32 Nov 1994 08:49:37 GMT", None),
            ("tomorrow", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_date_or_none(bytes: Vec<u8>, texts in "[0-9:a-z ,-]{0,40}") {
            prop_assert!([parse(&bytes), parse(texts.as_bytes())].iter().flatten().all(|s| s.abs() < 300_000_000_000));
        }
    }
}
