//! Finds secrets in free text: log lines, messages, comments, attributes.
//!
//! A value is a secret if one of these marks it:
//!
//! - a secret name and `=`, `:`, `=>` or the like: `password=X`, `password: 'X'`, `{"password":"X"}`, also in JSON
//!   within JSON. In quotes the value ends with the quote, after `[` and `{` with the closing bracket, else with the
//!   word;
//! - a secret header that may hold several words (`Authorization: Bearer X`): it ends with the line, or with the quote
//!   that began before the name;
//! - a secret name separate from its value, see `separate_names`, or in a tag or a form part, see `markup`;
//! - a secret flag: `--password X`, `"--token", "X"`, and an option of a known program, see `programs`;
//! - `Bearer` or `Basic` before anything but a plain word;
//! - an address, see `url`, or a data source name, see `dsn`;
//! - a keyword of SQL, see `statement`.
//!
//! The decoded form of the text, without colours, is also searched, see `decoding`.
//!
//! Prose is kept where it can be distinguished from secrets: a plain word after `bad token:`, `unexpected token:` and
//! the like is kept, because parsers print such messages. So are placeholders (`?`, `$1`, `${name}`, `***`). In a lone
//! `token: word`, the word is redacted.

use std::ops::Range;

use super::arguments::password_of_user;
use super::decoding::DecodedText;
use super::keys::{ends_in, is_count, is_secret_key};
use super::programs::{self, OptionValue, Program};
use super::separate_names::{PendingHalf, Role, role};
use super::{Places, REDACTED, dsn, marks, markup, statement, url};

mod value;

/// Headers whose value may hold several words.
const LONG_HEADERS: [&str; 4] = ["authorization", "cookie", "cookies", "bearer"];
/// Names that stand in prose too, before a colon.
const WORDS_OF_PROSE: [&str; 6] = ["authorization", "bearer", "cookie", "credentials", "secret", "token"];
/// Words before such a name in prose.
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
/// Characters that end a word of free text, besides white space.
const WORD_ENDS: [char; 7] = ['"', '\'', '`', '<', '>', ',', ';'];

/// Of a longer name only the last so many bytes are looked at.
const NAME_BYTES_MAX: usize = 128;
/// White space and backslashes between a name and its separator.
const GAP_BYTES_MAX: usize = 8;
/// A shorter word after `Bearer` or `Basic` is no secret: `Basic 6`.
const CREDENTIAL_BYTES_MIN: usize = 6;

/// Finds the secrets of free text.
pub(super) fn find(text: &str, places: &mut Places) {
    let marks = marks::in_text(text);
    if marks.is_marked {
        find_as_written(text, places);
    }
    let decoded = if marks.is_encoded { DecodedText::of(text) } else { None };
    if let Some(decoded) = decoded.filter(|decoded| marks::in_text(&decoded.text).is_marked) {
        let mut found = Places::new();
        find_as_written(&decoded.text, &mut found);
        places.extend(found.into_iter().filter(|place| !place.is_empty()).map(|place| decoded.place(place)));
    }
}

fn find_as_written(text: &str, places: &mut Places) {
    let (mut offset, mut waiting) = (0, PendingHalf::default());
    for line in text.split_inclusive('\n') {
        let text = line.trim_end_matches(['\n', '\r']);
        let (no_query_before, program) = (0, (0, None));
        Line { text, offset, no_query_before, program, waiting: &mut waiting, places }.find();
        offset += line.len();
    }
    markup::find(text, places);
    statement::find_in_text(text, places);
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
    /// End of the words examined so far, and the last program name among them.
    program: (usize, Option<&'static Program>),
    waiting: &'a mut PendingHalf,
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
                b'@' => self.data_source(at),
                b'}' => {
                    self.waiting.end_object();
                    at + 1
                }
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
        // `token::Kind` is a path.
        let Some(name) = self.name_before(at).filter(|_| &self.text[at..after] != "::") else { return after };
        let value = after + leading_blanks(&self.text[after..]);
        let is_colon = &self.text[at..after] == ":";
        match role(&self.text[name.clone()]) {
            Some(Role::Name) => return self.name_apart(value),
            Some(Role::Value) => return self.value_apart(&name, value),
            None if !is_secret_key(&self.text[name.clone()]) => return after,
            None => {}
        }
        if value == self.text.len() || is_colon && self.is_prose(&name, value) || self.is_count(&name, value) {
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

    /// Whether a plural name and its value read as a count: `secrets: 3`.
    fn is_count(&self, name: &Range<usize>, value: usize) -> bool {
        is_count(&self.text[name.clone()], &self.text[value..self.word_end(value)])
    }

    /// Handles the name after `name:`, from its start.
    fn name_apart(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let is_before = |byte: &&u8| **byte == b'\\' || is_quote(**byte);
        let start = at + bytes[at..].iter().take(GAP_BYTES_MAX).take_while(is_before).count();
        let length = bytes[start..].iter().take(NAME_BYTES_MAX).take_while(|byte| is_name_byte(**byte)).count();
        if let Some(name) = self.text.get(start..start + length).filter(|name| !name.is_empty()) {
            let place = self.offset + start..self.offset + start + length;
            self.places.extend(self.waiting.name(name, place));
        }
        at
    }

    /// Handles the value after `value:`, from its start.
    fn value_apart(&mut self, name: &Range<usize>, at: usize) -> usize {
        match self.waiting.is_secret(self.offset + at) {
            Some(true) if at < self.text.len() => return self.marked(self.place_apart(name, at)),
            None if !self.waiting.is_within_value(self.offset + at) && !self.text[at..].starts_with(['{', '[']) => {
                let place = self.place_apart(name, at);
                self.waiting.keep_value(self.offset + place.start..self.offset + place.end);
            }
            _ => {}
        }
        at
    }

    /// The value after `value:`. If the pair has its own line, the value ends with the line.
    fn place_apart(&self, name: &Range<usize>, at: usize) -> Range<usize> {
        let has_line = self.text[..name.start].bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'-'));
        match self.closed_end(at) {
            Some(place) => place,
            None if has_line => at..self.text.len(),
            None => at..self.bare_end(at),
        }
    }

    /// Handles a possible data source name, from its `@`.
    fn data_source(&mut self, at: usize) -> usize {
        if let Some(place) = dsn::password_before(self.text, at) {
            self.mark(place);
        }
        at + 1
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
        if length > 0 && is_secret_key(&self.text[name_at..end]) {
            return match self.next_argument(end) {
                Some(value) => self.marked(value),
                None => end,
            };
        }
        if length > 0 && name_at == at + 1 {
            self.option(at);
        }
        end.max(at + 1)
    }

    /// The argument after a flag that ends here; `None` if another flag follows. It may be the next item of a list:
    /// `"--token", "X"`.
    fn next_argument(&self, end: usize) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let is_between = |byte: &&u8| matches!(**byte, b' ' | b'\t' | b',' | b'"' | b'\'');
        let value = end + bytes[end..].iter().take(GAP_BYTES_MAX).take_while(is_between).count();
        let is_parted = self.text[end..value].contains([' ', '\t', ',']);
        if !is_parted || value == bytes.len() || bytes[value] == b'-' {
            return None;
        }
        let end = match bytes[value - 1] {
            quote if is_quote(quote) => self.closing_quote(value, quote, 0),
            _ => self.bare_end(value),
        };
        Some(value..end)
    }

    /// Handles the short option that begins here: `mysql -pX`.
    fn option(&mut self, at: usize) {
        let quote = at.checked_sub(1).map(|before| self.text.as_bytes()[before]).filter(|before| is_quote(*before));
        let rest = &self.text[at..];
        let word = match quote {
            Some(quote) => &self.text[at..self.closing_quote(at, quote, 0)],
            None => &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())],
        };
        let Some(held) = self.program_before(at).and_then(|program| program.held(word)) else { return };
        let (OptionValue::Password(length) | OptionValue::User(length)) = held;
        let start = at + length;
        let argument = if length == word.len() {
            self.next_argument(start)
        } else {
            let is_quoted = quote.is_none() && is_quote(self.text.as_bytes()[start]);
            if is_quoted { self.closed_end(start) } else { Some(start..at + word.len()) }
        };
        let place = argument.and_then(|place| match held {
            OptionValue::Password(_) => Some(place),
            OptionValue::User(_) => password_of_user(&self.text[..place.end], place.start),
        });
        if let Some(place) = place {
            self.mark(place);
        }
    }

    /// The program whose arguments are here.
    fn program_before(&mut self, at: usize) -> Option<&'static Program> {
        let (known, mut program) = self.program;
        for word in self.text[known..at].split_inclusive(|c: char| c.is_whitespace() || "\"'`,[](){}|;&=".contains(c)) {
            program = programs::named(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())).or(program);
            if word.ends_with(['|', ';', '&']) {
                program = None;
            }
        }
        self.program = (at, program);
        program
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

/// Whether a text stands for a value that is elsewhere, or for a secret that was already redacted.
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
