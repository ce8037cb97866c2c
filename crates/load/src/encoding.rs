//! How a value is written in each part of a request, so that it stays a value.

/// The part of a request that a value stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// In the path or query: percent-encoded.
    Path,
    /// In a header: without control characters.
    Header,
    /// In the body: as it is.
    Body,
}

impl Encoding {
    /// Appends a value.
    pub(crate) fn append(self, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Encoding::Path => percent_encode(value, is_unreserved, out),
            Encoding::Header => out.extend(value.iter().filter(|byte| is_header_byte(**byte))),
            Encoding::Body => out.extend_from_slice(value),
        }
    }
}

/// Appends a value with every byte encoded that is not to be kept.
pub(crate) fn percent_encode(value: &[u8], keep: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in value {
        if keep(byte) {
            out.push(byte);
        } else {
            out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a byte may stand in a header's value (RFC 9110, 5.5).
pub(crate) fn is_header_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::Encoding::{self, Body, Header, Path};

    #[test]
    fn a_value_stays_a_value() {
        let cases: [(Encoding, &str, &str); 7] = [
            (Path, "aZ09-._~", "aZ09-._~"),
            (Path, "a b/c?d=e&f#%+", "a%20b%2Fc%3Fd%3De%26f%23%25%2B"),
            (Path, "ü\r\n", "%C3%BC%0D%0A"),
            (Header, "a\tb ü\r\nX: y\0", "a\tb üX: y"),
            (Header, "\u{7f}", ""),
            (Body, "a b\r\n\0ü", "a b\r\n\0ü"),
            (Body, "", ""),
        ];
        for (encoding, value, expected) in cases {
            let mut out = Vec::new();
            encoding.append(value.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{encoding:?} {value:?}");
        }
    }
}
