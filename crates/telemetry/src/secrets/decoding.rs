//! The readable form of a text: without colours, with percent-encoding, entities and escapes decoded.
//!
//! Secrets are searched in this form and redacted in the original text. Only ASCII is decoded, because names,
//! separators and quotes are ASCII.

use std::ops::Range;

/// Maximum depth of nested encodings, such as a URL in a parameter of a URL in a JSON string.
const LEVELS_MAX: usize = 4;
/// The longest terminal control sequence, in bytes: hyperlinks contain URLs.
const SEQUENCE_BYTES_MAX: usize = 2 << 10;
/// HTML and XML entities, without the `&`.
const ENTITIES: [(&str, u8); 5] = [("lt;", b'<'), ("gt;", b'>'), ("quot;", b'"'), ("apos;", b'\''), ("amp;", b'&')];

/// A decoded text, with the places of its parts in the original text.
#[derive(Debug, Clone, Default)]
pub(super) struct DecodedText {
    pub(super) text: String,
    pieces: Vec<Piece>,
}

/// A run of unchanged bytes, or one decoded byte.
#[derive(Debug, Clone)]
struct Piece {
    /// Start in the decoded text.
    at: usize,
    /// Place in the original text.
    from: Range<usize>,
}

impl DecodedText {
    /// The text with every encoding decoded; `None` if nothing is encoded.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut whole = Self::by(text, next_encoded)?;
        for _ in 1..LEVELS_MAX {
            let Some(inner) = Self::by(&whole.text, next_encoded) else { break };
            whole = inner.within(&whole);
        }
        Some(whole)
    }

    /// A statement with a blank for each comment; `None` if it has no comments.
    pub(super) fn without_comments(statement: &str) -> Option<Self> {
        Self::by(statement, next_comment)
    }

    fn by(text: &str, next: fn(&str, usize) -> Option<EncodedByte>) -> Option<Self> {
        let mut found = next(text, 0)?;
        let mut decoded = Self { text: String::with_capacity(text.len()), pieces: Vec::new() };
        let mut from = 0;
        loop {
            decoded.push_run(text, from..found.place.start);
            from = found.place.end;
            if let Some(byte) = found.byte {
                decoded.pieces.push(Piece { at: decoded.text.len(), from: found.place });
                decoded.text.push(char::from(byte));
            }
            match next(text, from) {
                Some(one) => found = one,
                None => break,
            }
        }
        decoded.push_run(text, from..text.len());
        Some(decoded)
    }

    /// Maps a text that was decoded from `outer` to places in the original text.
    fn within(self, outer: &Self) -> Self {
        let mut pieces = Vec::with_capacity(self.pieces.len());
        for (number, piece) in self.pieces.iter().enumerate() {
            if !self.is_run(number) {
                pieces.push(Piece { at: piece.at, from: outer.place(piece.from.clone()) });
                continue;
            }
            let Range { mut start, end } = piece.from;
            for number in outer.piece_of(start)..outer.pieces.len() {
                let part = start..outer.end_of(number).min(end);
                pieces.push(Piece { at: piece.at + (start - piece.from.start), from: outer.place(part.clone()) });
                start = part.end;
                if start >= end {
                    break;
                }
            }
        }
        Self { text: self.text, pieces }
    }

    fn push_run(&mut self, text: &str, run: Range<usize>) {
        if !run.is_empty() {
            self.pieces.push(Piece { at: self.text.len(), from: run.clone() });
            self.text.push_str(&text[run]);
        }
    }

    /// The place in the original text of a non-empty part of the decoded text.
    pub(super) fn place(&self, place: Range<usize>) -> Range<usize> {
        let (first, last) = (self.piece_of(place.start), self.piece_of(place.end.saturating_sub(1)));
        let start = if self.is_run(first) {
            self.pieces[first].from.start + (place.start - self.pieces[first].at)
        } else {
            self.pieces[first].from.start
        };
        let end = if self.is_run(last) {
            self.pieces[last].from.start + (place.end - self.pieces[last].at)
        } else {
            self.pieces[last].from.end
        };
        start..end.max(start)
    }

    /// Index of the piece that holds a position of the decoded text.
    fn piece_of(&self, at: usize) -> usize {
        self.pieces.partition_point(|piece| piece.at <= at).saturating_sub(1)
    }

    /// End of a piece in the decoded text.
    fn end_of(&self, piece: usize) -> usize {
        self.pieces.get(piece + 1).map_or(self.text.len(), |next| next.at)
    }

    /// Whether a piece is as long as its original text.
    fn is_run(&self, piece: usize) -> bool {
        self.end_of(piece) - self.pieces[piece].at == self.pieces[piece].from.len()
    }
}

/// An encoded sequence, and the byte it stands for; `None` if it displays nothing.
struct EncodedByte {
    place: Range<usize>,
    byte: Option<u8>,
}

fn next_encoded(text: &str, from: usize) -> Option<EncodedByte> {
    let bytes = text.as_bytes();
    let is_begin = |byte: &u8| matches!(byte, b'%' | b'&' | b'\\' | 0x1b | 0xc2);
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(is_begin)?;
        let rest = &bytes[at + 1..];
        let found = match bytes[at] {
            b'%' => hexadecimal(rest, 2).map(|byte| (2, Some(byte))),
            b'&' => entity(rest).map(|(length, byte)| (length, Some(byte))),
            b'\\' => escape(rest).map(|(length, byte)| (length, Some(byte))),
            0x1b => sequence(rest).map(|length| (length, None)),
            // U+009B is the one-character form of `ESC [`.
            _ if rest.first() == Some(&0x9b) => parameters(&rest[1..]).map(|length| (1 + length, None)),
            _ => None,
        };
        match found {
            Some((length, byte)) => return Some(EncodedByte { place: at..at + 1 + length, byte }),
            None => at += 1,
        }
    }
}

/// The ASCII character with this number of hexadecimal digits.
fn hexadecimal(bytes: &[u8], digits: usize) -> Option<u8> {
    let digits = str::from_utf8(bytes.get(..digits)?).ok().filter(|text| !text.starts_with('+'))?;
    u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii)
}

/// After an `&`: length of the entity, and its character.
fn entity(rest: &[u8]) -> Option<(usize, u8)> {
    if let Some((name, byte)) = ENTITIES.iter().find(|(name, _)| rest.starts_with(name.as_bytes())) {
        return Some((name.len(), *byte));
    }
    let number = rest.strip_prefix(b"#")?;
    let end = number.iter().take(8).position(|byte| *byte == b';')?;
    let digits = str::from_utf8(&number[..end]).ok()?;
    let number = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    Some((1 + end + 1, number.ok().filter(u8::is_ascii)?))
}

/// After a backslash: length of the JSON or Python escape, and its character. Escaped quotes are not decoded: the
/// search of free text handles them.
fn escape(rest: &[u8]) -> Option<(usize, u8)> {
    match rest.first()? {
        b'u' => Some((5, hexadecimal(rest.get(3..)?, 2).filter(|_| rest[1..3] == *b"00")?)),
        b'x' => Some((3, hexadecimal(&rest[1..], 2)?)),
        b'n' => Some((1, b'\n')),
        b'r' => Some((1, b'\r')),
        _ => None,
    }
}

/// After the escape character: length of the terminal control sequence (ECMA-48).
fn sequence(rest: &[u8]) -> Option<usize> {
    match rest.first()? {
        b'[' => parameters(&rest[1..]).map(|length| 1 + length),
        // A control string, such as a title or a hyperlink, ends with BEL or `ESC \`.
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let end = rest.iter().take(SEQUENCE_BYTES_MAX).position(|byte| matches!(byte, 0x07 | 0x1b))?;
            let is_long = rest[end] == 0x1b && rest.get(end + 1) == Some(&b'\\');
            Some(end + 1 + usize::from(is_long))
        }
        0x20..=0x2f if matches!(rest.get(1), Some(0x30..=0x7e)) => Some(2),
        0x30..=0x7e => Some(1),
        _ => None,
    }
}

/// Parameters and final byte of a control sequence.
fn parameters(rest: &[u8]) -> Option<usize> {
    let length = rest.iter().take(SEQUENCE_BYTES_MAX).take_while(|byte| (0x20..=0x3f).contains(*byte)).count();
    rest.get(length).filter(|byte| (0x40..=0x7e).contains(*byte)).map(|_| length + 1)
}

/// `/* … */`, and `-- …` up to the end of the line. MySQL's conditional `/*!50000 … */` is not a comment.
fn next_comment(statement: &str, from: usize) -> Option<EncodedByte> {
    let bytes = statement.as_bytes();
    let mut at = from;
    loop {
        at += bytes.get(at..)?.windows(2).position(|two| two == b"/*" || two == b"--")?;
        let begin = at + 2;
        if bytes[at] == b'/' && matches!(bytes.get(begin), Some(b'!' | b'M')) {
            at = begin;
            continue;
        }
        let (close, length) = if bytes[at] == b'/' { ("*/", 2) } else { ("\n", 1) };
        let end = statement[begin..].find(close).map_or(bytes.len(), |length_before| begin + length_before + length);
        return Some(EncodedByte { place: at..end, byte: Some(b' ') });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_decoded_and_places_found_again() {
        for (text, expected) in [
            ("\x1b[36mpassword\x1b[0m=\x1b[1;33mx\x1b[0m", "password=x"),
            ("\u{9b}36mpassword\u{9b}0m=x", "password=x"),
            ("\x1b]8;;https://h/\x1b\\label\x1b]8;;\x07!", "label!"),
            ("pass%77ord%3Dx%zz%", "password=x%zz%"),
            ("redirect=https%253A%252F%252Fh", "redirect=https://h"),
            ("&lt;password&gt;x&#60;/&#x70;assword&gt; &copy;", "<password>x</password> &copy;"),
            (r"p\u0061ssword=\x41 C:\dir \u00e9", r"password=A C:\dir \u00e9"),
            (r"\u001b[36mtoken\u001b[0m=x", "token=x"),
        ] {
            let decoded = DecodedText::of(text).unwrap();
            assert_eq!(decoded.text, expected);
        }
        assert!(DecodedText::of("95 % of A & B, é, C:\\dir \u{1b}").is_none());
        let text = "a%20\x1b[1mpassword\x1b[0m=%41b\x1b[0m c";
        let decoded = DecodedText::of(text).unwrap();
        let at = decoded.text.find("Ab").unwrap();
        assert_eq!(&text[decoded.place(at..at + 2)], "%41b");
        let at = decoded.text.find("password").unwrap();
        assert_eq!(&text[decoded.place(at..at + 8)], "password");
    }

    #[test]
    fn comments_of_statements_become_blanks() {
        let without = |text: &str| DecodedText::without_comments(text).map(|decoded| decoded.text);
        assert_eq!(without("BY/* c */'x' -- y\nz"), Some("BY 'x'  z".to_owned()));
        assert_eq!(without("BY /* c 'x'"), Some("BY  ".to_owned()));
        assert_eq!(without("/*!50000 BY 'x' */ - y"), None);
    }

    proptest! {
        #[test]
        fn places_stay_in_the_text(text in "(%[0-9a-f]{2}|&lt;|&#6[0-9];|\\\\u00[0-9a-f]{2}|\x1b\\[[0-9;]{0,4}m|[a-zé%&\\\\ ]){0,24}") {
            if let Some(decoded) = DecodedText::of(&text) {
                for at in (0..decoded.text.len()).filter(|at| decoded.text.is_char_boundary(*at)) {
                    let end = (at + 1..=decoded.text.len()).find(|end| decoded.text.is_char_boundary(*end)).unwrap();
                    let place = decoded.place(at..end);
                    prop_assert!(text.get(place).is_some_and(|part| !part.is_empty()));
                }
            }
        }
    }
}
