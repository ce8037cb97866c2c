//! Passwords in data source names without a scheme: Go's `user:X@tcp(host:3306)/db` and Oracle's
//! `user/X@//host:1521/service`.

use std::ops::Range;

/// The longest user and password, and the longest protocol or host, in bytes.
const CREDENTIALS_BYTES_MAX: usize = 256;
const PROTOCOL_BYTES_MAX: usize = 16;
const HOST_BYTES_MAX: usize = 253;
/// Number of digits of a port.
const PORT_DIGITS: std::ops::RangeInclusive<usize> = 2..=5;
/// Prefixes of Oracle data source names: the names of its JDBC drivers.
const ORACLE: [&str; 2] = ["jdbc:oracle:thin:", "jdbc:oracle:oci:"];

/// The password before the `@` at a position.
pub(super) fn password_before(text: &str, at: usize) -> Option<Range<usize>> {
    let after = &text[at + 1..];
    if is_go(after) {
        let start = start_of(text, at, |byte| ends_credentials(byte) || byte == b'(');
        return place_of(text, start..at, ':');
    }
    let start = start_of(text, at, |byte| ends_credentials(byte) || matches!(byte, b':' | b'='));
    let is_oracle = ORACLE.iter().any(|driver| text[..start].ends_with(driver)) || is_oracle(after);
    if is_oracle { place_of(text, start..at, '/') } else { None }
}

/// `tcp(…`, `unix(…`, `(…`, or `/` for the default address.
fn is_go(after: &str) -> bool {
    let protocol = after.bytes().take(PROTOCOL_BYTES_MAX).take_while(u8::is_ascii_alphanumeric).count();
    match after.as_bytes().get(protocol) {
        Some(b'(') => true,
        Some(b'/') => protocol == 0 && !after.starts_with("//"),
        _ => false,
    }
}

/// `//host…`, or `host:1521/…` and `host:1521:…`.
fn is_oracle(after: &str) -> bool {
    if after.starts_with("//") {
        return true;
    }
    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let host = after.bytes().take(HOST_BYTES_MAX).take_while(is_host).count();
    let Some(rest) = after[host..].strip_prefix(':').filter(|_| host > 0) else { return false };
    let digits = rest.bytes().take(PORT_DIGITS.end() + 1).take_while(u8::is_ascii_digit).count();
    PORT_DIGITS.contains(&digits) && matches!(rest.as_bytes().get(digits), Some(b'/' | b':'))
}

/// Start of the word that ends at a position.
fn start_of(text: &str, at: usize, ends: impl Fn(u8) -> bool) -> usize {
    let least = at.saturating_sub(CREDENTIALS_BYTES_MAX);
    let bytes = text.as_bytes();
    let start = (least..at).rev().find(|at| ends(bytes[*at])).map_or(least, |at| at + 1);
    (start..=at).find(|start| text.is_char_boundary(*start)).unwrap_or(at)
}

fn ends_credentials(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>')
}

/// The part after the first separator, if the part before it can be a user's name.
fn place_of(text: &str, credentials: Range<usize>, separator: char) -> Option<Range<usize>> {
    let (user, password) = text[credentials.clone()].split_once(separator)?;
    let is_user = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '=' | '$' | '%' | '#' | '\\');
    (!user.is_empty() && user.chars().all(is_user) && !password.is_empty())
        .then(|| credentials.start + user.len() + separator.len_utf8()..credentials.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_stand_before_an_address_without_a_scheme() {
        for (text, expected) in [
            ("app:p@ss/w@tcp(db:3306)/shop", Some("p@ss/w")),
            ("dsn=app:x@unix(/run/mysqld.sock)/shop", Some("x")),
            ("app:x@/shop", Some("x")),
            ("scott/tiger@//db:1521/orcl", Some("tiger")),
            ("scott/tiger@db.example:1521:orcl", Some("tiger")),
            ("jdbc:oracle:thin:scott/tiger@orcl", Some("tiger")),
            ("jdbc:oracle:thin:@//db:1521/orcl", None),
            ("GET /users/joe@host:80/x", None),
            ("npm/pkg@1.2.3", None),
            ("image/name@sha256:9f86d081884c7d659a2feaa0c55ad015", None),
            ("joe@example.com", None),
            ("git@github.com:joe/shop", None),
            ("mail to:joe@example.com:25 ok", None),
            ("12:30 @ (room)", None),
        ] {
            let found = text.match_indices('@').filter_map(|(at, _)| password_before(text, at)).next_back();
            assert_eq!(found.map(|place| &text[place]), expected, "{text}");
        }
    }
}
