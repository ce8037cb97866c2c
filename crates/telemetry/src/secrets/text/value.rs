//! Finds the end of a value in free text: its quote, its bracket, its line or its word.

use std::ops::Range;

use super::{GAP_BYTES_MAX, Line, NAME_BYTES_MAX, is_name_byte, is_quote, leading_blanks};
use crate::secrets::REDACTED;

/// Words before a secret in the value of a header.
const SCHEMES: [&str; 7] = ["apikey", "basic", "bearer", "digest", "negotiate", "sharedaccesssignature", "token"];

impl Line<'_> {
    /// The content of a value in quotes or brackets.
    pub(super) fn closed_end(&self, value: usize) -> Option<Range<usize>> {
        let rest = &self.text[value..];
        let backslashes = rest.bytes().take(GAP_BYTES_MAX).take_while(|byte| *byte == b'\\').count();
        match rest.as_bytes().get(backslashes) {
            Some(quote) if is_quote(*quote) => {
                let start = value + backslashes + 1;
                Some(start..self.closing_quote(start, *quote, backslashes))
            }
            Some(b'[' | b'{') if backslashes == 0 => Some(value..self.closing_bracket(value)),
            _ => None,
        }
    }

    /// End of the text in a quote that was opened with this number of backslashes before it; the end of the line if it
    /// is not closed.
    pub(super) fn closing_quote(&self, start: usize, quote: u8, backslashes: usize) -> usize {
        let mut run = 0;
        for (at, byte) in self.text.bytes().enumerate().skip(start) {
            if byte == b'\\' {
                run += 1;
                continue;
            }
            let is_closing = if backslashes == 0 { run % 2 == 0 } else { run <= backslashes };
            if byte == quote && is_closing {
                return at - run.min(backslashes);
            }
            run = 0;
        }
        self.text.len()
    }

    /// End of a list or object; the end of the line if it is not closed.
    pub(super) fn closing_bracket(&self, start: usize) -> usize {
        let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
        for (at, byte) in self.text.bytes().enumerate().skip(start) {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_quoted = !is_quoted,
                b'[' | b'{' if !is_quoted => depth += 1,
                b']' | b'}' if !is_quoted => {
                    depth -= 1;
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
        }
        self.text.len()
    }

    /// Whether an item of a list or object, or the line, ends here.
    pub(super) fn ends_item(&self, at: usize) -> bool {
        let rest = self.text[at..].trim_start_matches([' ', '\t']);
        rest.is_empty() || rest.starts_with(['"', '\'', '`', '\\', ',', ']', '}'])
    }

    /// End of a header's value: the quote that opened before its name, else the end of the line.
    pub(super) fn header_end(&self, name: &Range<usize>, value: usize) -> usize {
        let redacted_end = value + REDACTED.len();
        if self.text[value..].starts_with(REDACTED) && self.ends_item(redacted_end) {
            return redacted_end;
        }
        match name.start.checked_sub(1).map(|at| self.text.as_bytes()[at]) {
            Some(quote) if is_quote(quote) => self.closing_quote(value, quote, 0),
            _ => self.text.len(),
        }
    }

    /// End of a value that is a word, including the scheme of a credential before it.
    pub(super) fn bare_end(&self, value: usize) -> usize {
        if self.text[value..].starts_with(REDACTED) {
            return value + REDACTED.len();
        }
        let end = self.word_end(value);
        let next = end + leading_blanks(&self.text[end..]);
        let is_scheme = SCHEMES.iter().any(|scheme| self.text[value..end].eq_ignore_ascii_case(scheme));
        let end = if is_scheme && next > end { self.word_end(next) } else { end };
        value + without_outer_brackets(&self.text[value..end]).len()
    }

    pub(super) fn word_end(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        (start..bytes.len())
            .find(|at| match bytes[*at] {
                byte if byte.is_ascii_whitespace() => true,
                b'"' | b'\'' | b'`' | b'<' | b'>' => true,
                b',' | b';' | b'&' => self.is_end_of_pair(at + 1),
                _ => false,
            })
            .unwrap_or(bytes.len())
    }

    /// Whether the text after a `,`, `;` or `&` does not belong to the value before it.
    pub(super) fn is_end_of_pair(&self, at: usize) -> bool {
        let rest = &self.text.as_bytes()[at..];
        match rest.first() {
            None => true,
            Some(byte) if byte.is_ascii_whitespace() || is_quote(*byte) || b"\\[]{}()".contains(byte) => true,
            Some(_) => {
                let name = rest.iter().take(NAME_BYTES_MAX).take_while(|byte| is_name_byte(**byte)).count();
                name > 0 && matches!(rest.get(name), Some(b'=' | b':'))
            }
        }
    }
}

/// A word without closing brackets that were opened before it: `{password: X}`.
fn without_outer_brackets(word: &str) -> &str {
    let count = |bracket: char| word.matches(bracket).count();
    let mut word_end = word.len();
    for (open, close) in [('(', ')'), ('[', ']'), ('{', '}')] {
        let is_outer = count(close) > count(open);
        if is_outer {
            word_end = word_end.min(word.trim_end_matches([')', ']', '}']).len());
        }
    }
    &word[..word_end]
}
