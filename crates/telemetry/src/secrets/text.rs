//! Where free text holds secrets: log lines, messages, comments, attributes.
//!
//! A value is a secret when one of these marks it:
//!
//! - a secret name and `=`, `:`, `=>` or the like: `password=X`, `password: 'X'`, `{"password":"X"}`, in JSON within JSON
//!   too. In quotes it ends with the quote, after `[` and `{` with the bracket that closes it, else with the word;
//! - a secret header that may hold several words (`Authorization: Bearer X`): it ends with the line, or with the quote
//!   that began before the name;
//! - a secret flag: `--password X`, `"--token", "X"`;
//! - `Bearer` or `Basic` before something that is no plain word;
//! - an address, see `url`.
//!
//! Prose stays readable where it can be distinguished from secrets: after `bad token:`, `unexpected token:` and the
//! like, a plain word is kept, because parsers say so. So are placeholders (`?`, `$1`, `${name}`, `***`). A lone
//! `token: word` is blanked.

use std::ops::Range;

use super::keys::{ends_in, is_secret_key};
use super::{Places, REDACTED, url};

/// Headers whose value may hold several words.
const LONG_HEADERS: [&str; 4] = ["authorization", "cookie", "cookies", "bearer"];
/// Names that stand in prose too, before a colon.
const WORDS_OF_PROSE: [&str; 6] = ["authorization", "bearer", "cookie", "credentials", "secret", "token"];
/// What stands before such a name in prose.
const ADJECTIVES: [&str; 14] = [
    "bad",
    "expected",
    "expired",
    "illegal",
    "invalid",
    "last",
    "malformed",
    "missing",
    "next",
    "unexpected",
    "unknown",
    "unrecognized",
    "unterminated",
    "wrong",
];
/// Words before a secret in the value of a header.
const SCHEMES: [&str; 7] = ["apikey", "basic", "bearer", "digest", "negotiate", "sharedaccesssignature", "token"];
/// What ends a word of free text, besides white space.
const WORD_ENDS: [char; 7] = ['"', '\'', '`', '<', '>', ',', ';'];

/// Of a longer name only the last so many bytes are looked at.
const NAME_BYTES_MAX: usize = 128;
/// White space and backslashes between a name and its separator.
const GAP_BYTES_MAX: usize = 8;
/// A shorter word after `Bearer` or `Basic` is no secret: `Basic 6`.
const CREDENTIAL_BYTES_MIN: usize = 6;

/// Finds the secrets of free text.
pub(super) fn find(text: &str, places: &mut Places) {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        Line { text: line.trim_end_matches(['\n', '\r']), offset, no_query_before: 0, places }.find();
        offset += line.len();
    }
}

/// Whether there is no secret in a text.
pub(crate) fn is_plain_text(text: &str) -> bool {
    let mut places = Places::new();
    find(text, &mut places);
    places.is_empty()
}

struct Line<'a> {
    text: &'a str,
    /// Where the line begins in the text.
    offset: usize,
    /// How far it is known that no query begins.
    no_query_before: usize,
    places: &'a mut Places,
}

impl Line<'_> {
    fn find(mut self) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            at = match bytes[at] {
                b':' if self.text[at..].starts_with("://") => self.address(at),
                b'?' | b'#' => self.query(at),
                b'=' | b':' => self.pair(at),
                b'-' if self.begins_word(at) => self.flag(at),
                b' ' if ends_in_scheme(&bytes[..at]) => self.credential(at),
                _ => at + 1,
            };
        }
    }

    fn mark(&mut self, place: Range<usize>) {
        debug_assert!(self.text.is_char_boundary(place.start) && self.text.is_char_boundary(place.end));
        if !is_placeholder(&self.text[place.clone()]) {
            self.places.push(self.offset + place.start..self.offset + place.end);
        }
    }

    /// From a `://` on. Says where to go on.
    fn address(&mut self, at: usize) -> usize {
        let start = at + 3;
        let is_end = |c: char| matches!(c, '/' | '?' | '#') || ends_word(c);
        let end = start + self.text[start..].find(is_end).unwrap_or(self.text.len() - start);
        url::find(&self.text[at..end], self.offset + at, self.places);
        end
    }

    /// From the `?` or `#` of an address to its end.
    fn query(&mut self, at: usize) -> usize {
        let start = at + 1;
        if start < self.no_query_before {
            return start;
        }
        let end = start + self.text[start..].find(ends_word).unwrap_or(self.text.len() - start);
        let query = &self.text[start..end];
        if !query.contains('=') {
            self.no_query_before = end;
            return start;
        }
        url::find_in_query(query, self.offset + start, self.places);
        end
    }

    /// From the separator between a name and a value.
    fn pair(&mut self, at: usize) -> usize {
        let mut after = at + 1;
        while after < at + 3 && self.text[after..].starts_with(['=', ':', '>']) {
            after += 1;
        }
        let Some(name) = self.name_before(at) else { return after };
        // `token::Kind` is a path.
        if &self.text[at..after] == "::" || !is_secret_key(&self.text[name.clone()]) {
            return after;
        }
        let value = after + leading_blanks(&self.text[after..]);
        let is_colon = &self.text[at..after] == ":";
        if value == self.text.len() || is_colon && self.is_prose(&name, value) {
            return value;
        }
        let is_header = is_colon && LONG_HEADERS.iter().any(|header| ends_in(&self.text[name.clone()], header));
        let end = match self.closed_end(value) {
            Some(place) if !is_header || self.ends_item(place.end) => return self.marked(place),
            _ if is_header => self.header_end(&name, value),
            _ => self.bare_end(value),
        };
        self.marked(value..end)
    }

    fn marked(&mut self, place: Range<usize>) -> usize {
        let end = place.end.max(place.start + 1).min(self.text.len());
        self.mark(place);
        (end..self.text.len()).find(|at| self.text.is_char_boundary(*at)).unwrap_or(self.text.len())
    }

    /// The name that ends before a separator, perhaps in quotes.
    fn name_before(&self, separator: usize) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let back = |from: usize, max: usize, is_it: fn(u8) -> bool| {
            let least = from.saturating_sub(max);
            (least..from).rev().find(|at| !is_it(bytes[*at])).map_or(least, |at| at + 1)
        };
        let mut end = back(separator, GAP_BYTES_MAX, |byte| byte == b' ' || byte == b'\t');
        // `config["password"] = …`
        if end > 1 && bytes[end - 1] == b']' && is_quote(bytes[end - 2]) {
            end -= 1;
        }
        if end > 0 && is_quote(bytes[end - 1]) {
            end = back(end - 1, GAP_BYTES_MAX, |byte| byte == b'\\');
        }
        let mut start = back(end, NAME_BYTES_MAX, is_name_byte);
        while !self.text.is_char_boundary(start) {
            start += 1;
        }
        (start < end).then_some(start..end)
    }

    /// Whether a name and what follows its colon read as prose: `bad token: unexpected end`.
    fn is_prose(&self, name: &Range<usize>, value: usize) -> bool {
        if !WORDS_OF_PROSE.iter().any(|word| self.text[name.clone()].eq_ignore_ascii_case(word)) {
            return false;
        }
        let Some(before) = self.text[..name.start].strip_suffix(' ') else { return false };
        let bytes = before.as_bytes();
        let is_adjective = |word: &&str| {
            let Some(start) = bytes.len().checked_sub(word.len()) else { return false };
            bytes[start..].eq_ignore_ascii_case(word.as_bytes())
                && start.checked_sub(1).is_none_or(|at| !bytes[at].is_ascii_alphanumeric())
        };
        let rest = &self.text[value..];
        let word = &rest[..rest.find(ends_word).unwrap_or(rest.len())];
        ADJECTIVES.iter().any(is_adjective) && word.bytes().all(|byte| byte.is_ascii_lowercase())
    }

    /// The content of a value that has an end of its own: in quotes or brackets.
    fn closed_end(&self, value: usize) -> Option<Range<usize>> {
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

    /// Where the text ends that such a quote with so many backslashes before it began; the line's end when it does not.
    fn closing_quote(&self, start: usize, quote: u8, backslashes: usize) -> usize {
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

    /// Where a list or object ends; the line's end when it does not.
    fn closing_bracket(&self, start: usize) -> usize {
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

    /// Whether an item of a list or object ends here, or the line.
    fn ends_item(&self, at: usize) -> bool {
        let rest = self.text[at..].trim_start_matches([' ', '\t']);
        rest.is_empty() || rest.starts_with(['"', '\'', '`', '\\', ',', ']', '}'])
    }

    /// Where the value of a header ends: with the quote that began before its name, else with the line.
    fn header_end(&self, name: &Range<usize>, value: usize) -> usize {
        let redacted_end = value + REDACTED.len();
        if self.text[value..].starts_with(REDACTED) && self.ends_item(redacted_end) {
            return redacted_end;
        }
        match name.start.checked_sub(1).map(|at| self.text.as_bytes()[at]) {
            Some(quote) if is_quote(quote) => self.closing_quote(value, quote, 0),
            _ => self.text.len(),
        }
    }

    /// Where a value that is a word ends. The scheme of a credential belongs to it.
    fn bare_end(&self, value: usize) -> usize {
        if self.text[value..].starts_with(REDACTED) {
            return value + REDACTED.len();
        }
        let end = self.word_end(value);
        let next = end + leading_blanks(&self.text[end..]);
        let is_scheme = SCHEMES.iter().any(|scheme| self.text[value..end].eq_ignore_ascii_case(scheme));
        let end = if is_scheme && next > end { self.word_end(next) } else { end };
        value + without_outer_brackets(&self.text[value..end]).len()
    }

    fn word_end(&self, start: usize) -> usize {
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

    /// Whether what follows a `,`, `;` or `&` does not belong to the value before it.
    fn is_end_of_pair(&self, at: usize) -> bool {
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

    fn begins_word(&self, at: usize) -> bool {
        at.checked_sub(1)
            .is_none_or(|before| matches!(self.text.as_bytes()[before], b' ' | b'\t' | b'"' | b'\'' | b'['))
    }

    /// From the first dash of a flag.
    fn flag(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let name_at = (at..bytes.len().min(at + 2)).find(|at| bytes[*at] != b'-').unwrap_or(bytes.len().min(at + 2));
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let length = bytes[name_at..].iter().take(NAME_BYTES_MAX).take_while(is_name).count();
        let end = name_at + length;
        if length == 0 || !is_secret_key(&self.text[name_at..end]) {
            return end.max(at + 1);
        }
        // Between the items of a list: `"--token", "X"`.
        let between = self.text[end..]
            .bytes()
            .take(GAP_BYTES_MAX)
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b',' | b'"' | b'\''))
            .count();
        let value = end + between;
        let is_parted = self.text[end..value].contains([' ', '\t', ',']);
        if !is_parted || value == bytes.len() || bytes[value] == b'-' {
            return end;
        }
        let end = match bytes[value - 1] {
            quote if is_quote(quote) => self.closing_quote(value, quote, 0),
            _ => self.bare_end(value),
        };
        self.marked(value..end)
    }

    /// From the blank after `Bearer` or `Basic`.
    fn credential(&mut self, at: usize) -> usize {
        let value = at + leading_blanks(&self.text[at..]);
        let is_of_credential = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
        let length = self.text[value..].bytes().take_while(is_of_credential).count();
        let word = &self.text[value..value + length];
        let content = word.trim_end_matches('=');
        let is_plain_word = content.bytes().all(|byte| byte.is_ascii_alphabetic())
            && content.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
        // `Bearer realm="…"` requests a credential.
        if length < CREDENTIAL_BYTES_MIN || is_plain_word || content.contains('=') {
            return value;
        }
        self.marked(value..value + length)
    }
}

/// Whether a text ends in the word `Bearer` or `Basic`.
fn ends_in_scheme(text: &[u8]) -> bool {
    let ends_in = |word: &[u8]| {
        text.len().checked_sub(word.len()).is_some_and(|start| {
            text[start..].eq_ignore_ascii_case(word)
                && start.checked_sub(1).is_none_or(|before| !text[before].is_ascii_alphanumeric())
        })
    };
    ends_in(b"bearer") || ends_in(b"basic")
}

/// What stands for a value that is elsewhere, or for a secret that somebody else has blanked.
fn is_placeholder(value: &str) -> bool {
    let is_enclosed = |start: &str, end: &str| {
        let inner = value.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        inner.is_some_and(|inner| !inner.contains(['{', '}']))
    };
    value.bytes().all(|byte| byte == b'*')
        || matches!(value, "?" | "%s" | REDACTED)
        || value.strip_prefix('$').is_some_and(|number| number.len() < 3 && number.bytes().all(|b| b.is_ascii_digit()))
        || is_enclosed("${", "}")
        || is_enclosed("{{", "}}")
}

/// A word without the brackets at its end that were opened before it: `{password: X}`.
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

fn leading_blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$' | b'[' | b']') || !byte.is_ascii()
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || WORD_ENDS.contains(&c)
}
