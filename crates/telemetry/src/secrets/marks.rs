//! What a text needs to hold a secret at all: a name, an address, an encoding, a program with a password option.
//!
//! Nearly all texts have none of these, and nearly all of what redaction costs is to say so. A table of bytes says it for
//! short texts, an automaton for the others; only then is a text searched.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::programs::PROGRAMS;

/// Parts of every secret name, and what else can begin a search of free text. In lower case.
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
    // Addresses and data source names.
    "://",
    "@",
];

/// Parts of every keyword that a password follows in a statement of SQL or of MongoDB. In lower case.
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

/// What each byte can begin.
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
    /// May part a name from its value.
    Separator,
    /// May begin an encoding.
    Encoding,
    /// May part a scheme (`Bearer`, `Basic`) or the last keyword of `IDENTIFIED BY` from a credential.
    Blank,
}

/// What a text may hold that is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Found {
    /// A secret, as it is written.
    pub(super) is_marked: bool,
    /// Something encoded.
    pub(super) is_encoded: bool,
}

/// What free text may hold.
#[inline]
pub(super) fn in_text(text: &str) -> Found {
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
    Found { is_marked: is_separated && OF_TEXT.is_match(text), is_encoded }
}

/// Whether a statement may hold a password that SQL or MongoDB sets.
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
        // It fails beyond 2³¹ bytes of marks. Without it every text is searched.
        Self(automaton.ok())
    }

    fn is_match(&self, text: &str) -> bool {
        self.0.as_ref().is_none_or(|marks| marks.is_match(text))
    }
}
