//! Quick test whether a text can hold a secret: it needs a name, a URL, an encoding, or a program with a password
//! option.
//!
//! Nearly all texts have none of these, so this test is nearly the whole cost of redaction. A table of bytes decides
//! for short texts, an automaton for others; only then is a text searched.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::programs::PROGRAMS;

/// Parts of every secret name, and other beginnings of a match in free text. In lower case.
const TEXT_MARKS: [&str; 19] = [
    "auth",
    "basic",
    "bearer",
    "code=",
    "connection",
    "cookie",
    "credential",
    "identified",
    "jwt",
    "key",
    "pass",
    "pwd",
    "secret",
    "session",
    "sig=",
    "signature",
    "token",
    // URLs and data source names.
    "://",
    "@",
];

/// Parts of every keyword before a password in SQL and MongoDB statements. In lower case.
const STATEMENT_MARKS: [&str; 16] = [
    "access_key",
    "account_key",
    "api_key",
    "authenticate",
    "connection",
    "createuser",
    "credential",
    "identified",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
    "token",
    "updateuser",
    "://",
];

/// Class of each byte.
const BYTES: [Byte; 256] = {
    let mut bytes = [Byte::Plain; 256];
    let mut at = 0;
    let separators = b":=?#-@<>'";
    while at < separators.len() {
        bytes[separators[at] as usize] = Byte::Separator;
        at += 1;
    }
    at = 0;
    let encodings = b"%&\\\x1b\xc2";
    while at < encodings.len() {
        bytes[encodings[at] as usize] = Byte::Encoding;
        at += 1;
    }
    bytes[b' ' as usize] = Byte::Blank;
    bytes
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Byte {
    Plain,
    /// May separate a name from its value.
    Separator,
    /// May begin an encoding.
    Encoding,
    /// May separate a scheme (`Bearer`, `Basic`) or the last keyword of `IDENTIFIED BY` from a credential.
    Blank,
}

/// Reasons to search a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SearchReasons {
    /// It may hold a secret in plain form.
    pub(super) is_marked: bool,
    /// It may hold an encoding.
    pub(super) is_encoded: bool,
}

/// Reasons to search a free text.
#[inline]
pub(super) fn in_text(text: &str) -> SearchReasons {
    let (mut before, mut is_separated, mut is_encoded) = (0, false, false);
    for byte in text.bytes() {
        match BYTES[usize::from(byte)] {
            Byte::Plain => {}
            Byte::Separator => is_separated = true,
            Byte::Encoding => is_encoded = true,
            Byte::Blank => is_separated |= matches!(before, b'c' | b'C' | b'r' | b'R' | b'y' | b'Y'),
        }
        before = byte;
    }
    SearchReasons { is_marked: is_separated && OF_TEXT.is_match(text), is_encoded }
}

/// Whether a statement may hold a password that it sets, in SQL or MongoDB.
pub(super) fn may_hold_password(statement: &str) -> bool {
    OF_STATEMENT.is_match(statement)
}

static OF_TEXT: LazyLock<Marks> = LazyLock::new(|| {
    let programs = PROGRAMS.iter().flat_map(|program| program.names);
    Marks::new(TEXT_MARKS.iter().chain(programs))
});
static OF_STATEMENT: LazyLock<Marks> = LazyLock::new(|| Marks::new(&STATEMENT_MARKS));

struct Marks(Option<AhoCorasick>);

impl Marks {
    fn new<'a>(marks: impl IntoIterator<Item = &'a &'a str>) -> Self {
        let automaton =
            AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(marks);
        // Building fails beyond 2³¹ bytes of marks. Without the automaton, every text is searched.
        Self(automaton.ok())
    }

    fn is_match(&self, text: &str) -> bool {
        self.0.as_ref().is_none_or(|marks| marks.is_match(text))
    }
}
