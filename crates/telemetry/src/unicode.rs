//! JSON text from other programs, with U+FFFD in place of invalid Unicode.
//!
//! SDKs cut long texts between the two halves of a character. This leaves half of a surrogate pair (`\ud83d`) or the
//! first bytes of a UTF-8 sequence, and a JSON parser then refuses the whole document. With a replacement, only that
//! character is lost. A byte order mark at the beginning is dropped.

use std::borrow::Cow;
use std::io::{self, Read};

/// The byte order mark of UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The escape that replaces half of a surrogate pair. Both have the same length.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";
/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 16;

/// Whether more bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Yes,
    No,
}

/// The text of a whole document. Borrowed if nothing had to be replaced.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    match str::from_utf8(bytes) {
        Ok(text) if !has_surrogate(bytes) => Cow::Borrowed(text),
        _ => {
            let mut owned = bytes.to_vec();
            replace_halves(&mut owned, More::No);
            Cow::Owned(String::from_utf8_lossy(&owned).into_owned())
        }
    }
}

/// A reader that replaces invalid Unicode.
#[derive(Debug)]
pub(crate) struct Unicode<R> {
    inner: R,
    /// Bytes that were read: first the final ones, then those that depend on the following bytes.
    bytes: Vec<u8>,
    /// Number of final bytes that were returned.
    given: usize,
    /// Number of final bytes.
    ready: usize,
    more: More,
}

impl<R: Read> Unicode<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, bytes: Vec::new(), given: 0, ready: 0, more: More::Yes }
    }

    /// Reads the next bytes and makes at least one of them final, unless there are none.
    fn fill(&mut self) -> io::Result<()> {
        self.bytes.drain(..self.given);
        (self.given, self.ready) = (0, 0);
        while self.ready == 0 && self.more == More::Yes {
            let before = self.bytes.len();
            self.bytes.resize(before + CHUNK_BYTES, 0);
            let read = self.inner.read(&mut self.bytes[before..]);
            self.bytes.truncate(before + *read.as_ref().unwrap_or(&0));
            if read? == 0 {
                self.more = More::No;
            }
            self.ready = make_final(&mut self.bytes, self.more);
        }
        Ok(())
    }
}

impl<R: Read> Read for Unicode<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.ready {
            self.fill()?;
        }
        let count = buffer.len().min(self.ready - self.given);
        buffer[..count].copy_from_slice(&self.bytes[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

/// Replaces invalid Unicode. Returns the number of bytes at the beginning that do not depend on the following bytes.
fn make_final(bytes: &mut Vec<u8>, more: More) -> usize {
    let whole = replace_halves(bytes, more);
    let whole = if more == More::Yes { whole - cut_sequence(&bytes[..whole]) } else { whole };
    if str::from_utf8(&bytes[..whole]).is_ok() {
        return whole;
    }
    let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
    bytes.splice(..whole, text.bytes());
    text.len()
}

/// Length of the incomplete UTF-8 sequence at the end, 0 to 3.
fn cut_sequence(bytes: &[u8]) -> usize {
    let sequence_length = |lead: u8| match lead {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let lead = bytes.iter().rev().take(3).position(|byte| *byte >= 0xc0);
    lead.filter(|at| at + 1 < sequence_length(bytes[bytes.len() - 1 - at])).map_or(0, |at| at + 1)
}

fn has_surrogate(bytes: &[u8]) -> bool {
    bytes.windows(3).any(|escape| matches!(escape, [b'\\', b'u', b'd' | b'D']))
}

/// Replaces halves of surrogate pairs. Returns the number of bytes at the beginning that do not depend on the following
/// bytes.
fn replace_halves(bytes: &mut [u8], more: More) -> usize {
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += next;
        let (here, after) = (Escape::at(&bytes[at..]), Escape::at(bytes.get(at + 6..).unwrap_or_default()));
        at += match (here, after) {
            (Escape::Cut, _) | (Escape::High, Escape::Cut) if more == More::Yes => return at,
            (Escape::Cut, _) => return bytes.len(),
            (Escape::High, Escape::Low) => 12,
            (Escape::High | Escape::Low, _) => {
                bytes[at..at + 6].copy_from_slice(REPLACEMENT);
                6
            }
            (Escape::Other, _) => 2,
        };
    }
    bytes.len()
}

/// Kind of an escape in a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// The first half of a surrogate pair.
    High,
    /// The second half.
    Low,
    /// Anything else, including text that is not an escape.
    Other,
    /// The bytes end within it.
    Cut,
}

impl Escape {
    fn at(bytes: &[u8]) -> Self {
        match *bytes {
            [] | [b'\\'] => Escape::Cut,
            [b'\\', b'u', ref digits @ ..] if digits.len() < 4 => Escape::Cut,
            [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..] => Escape::High,
            [b'\\', b'u', b'd' | b'D', b'c'..=b'f' | b'C'..=b'F', ..] => Escape::Low,
            _ => Escape::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reader that returns a few bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let (now, later) = self.0.split_at(self.1.min(self.0.len()).min(buffer.len()));
            buffer[..now.len()].copy_from_slice(now);
            self.0 = later;
            Ok(now.len())
        }
    }

    fn streamed(bytes: &[u8], at_once: usize) -> String {
        let mut text = String::new();
        Unicode::new(Drip(bytes, at_once)).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn half_a_character_is_replaced_and_a_whole_one_stays() {
        let cases: [(&[u8], &str); 11] = [
            (br#""\ud83d""#, r#""\ufffd""#),
            (br#""\uDE00 x""#, r#""\ufffd x""#),
            (br#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (br#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (br#""\ud83d\n""#, r#""\ufffd\n""#),
            (br#""\\ud83d""#, r#""\\ud83d""#),
            (br#""\\\ud83d""#, r#""\\\ufffd""#),
            (br#""\u00e9""#, r#""\u00e9""#),
            (b"\"a\xf0\x9f\x98\"", "\"a\u{fffd}\""),
            (b"\"\xed\xa0\xbd\"", "\"\u{fffd}\u{fffd}\u{fffd}\""),
            (b"\"\xc3\xa9\"", "\"\u{e9}\""),
        ];
        for (bytes, expected) in cases {
            assert_eq!(text(bytes), expected);
            (1..9).for_each(|at_once| assert_eq!(streamed(bytes, at_once), expected, "{at_once} at once"));
            assert!(serde_json::from_str::<String>(&text(bytes)).is_ok(), "{expected}");
        }
        assert!(matches!(text(br#""\\ plain \u00e9""#), Cow::Borrowed(_)), "nothing is copied without need");
        assert_eq!(text(b"\xef\xbb\xbf{}"), "{}");
    }

    const PIECES: &[&[u8]] =
        &[b"\\", b"\\u", b"\\ud8", b"\\ud83d", b"\\ude00", b"\xf0\x9f", b"\x98\x80", b"\xc3", b"a", b"\""];

    proptest! {
        #[test]
        fn any_bytes_become_text_however_they_come(
            pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12),
            at_once in 1_usize..9,
        ) {
            let bytes = pieces.concat();
            prop_assert_eq!(streamed(&bytes, at_once), text(&bytes));
        }

        #[test]
        fn any_text_stays_as_it_is(words in prop::collection::vec(any::<String>(), 0..4)) {
            let json = serde_json::to_string(&words).unwrap();
            prop_assert_eq!(text(json.as_bytes()), json.as_str());
        }
    }
}
