//! Where database statements hold passwords that they set or show: SQL of PostgreSQL, MySQL, MariaDB, SQL Server and
//! Oracle, and the commands of Redis.
//!
//! It looks at what follows a keyword, wherever that stands, and not at which literal it is in: a statement that is cut
//! or quoted in an unknown dialect must not hide what comes after. What a statement compares or stores stays
//! (`WHERE password = 'x'`), because whether that is a secret its name does not say.

use std::ops::Range;

use super::Places;
use super::keys::ends_in;

/// First words of statements in which `password = 'x'` sets a password.
const DEFINITIONS: [&str; 5] = ["alter", "change", "create", "grant", "set"];
/// First words of statements of SQL that are no commands of Redis.
const QUERIES: [&str; 12] =
    ["alter", "call", "create", "delete", "explain", "grant", "insert", "merge", "select", "update", "values", "with"];
/// First words of commands of Redis that hold passwords.
const COMMANDS: [&str; 5] = ["acl", "auth", "config", "hello", "migrate"];
/// Settings of Redis that are passwords.
const SETTINGS: [&str; 4] = ["masterauth", "requirepass", "tls-client-key-file-pass", "tls-key-file-pass"];
/// Words after `IDENTIFIED` that a password or its hash follows.
const BEFORE_PASSWORD: [&str; 6] = ["as", "by", "password", "replace", "using", "values"];
/// Words after `IDENTIFIED` that are part of its clause and no password.
const OF_CLAUSE: [&str; 8] = ["and", "as", "by", "or", "password", "random", "using", "values"];
/// Words and literals of an `IDENTIFIED` clause.
const CLAUSE_MAX: usize = 16;
/// Longest tag of a literal between dollars, with both dollars.
const TAG_BYTES_MAX: usize = 66;

/// Finds the passwords that a statement sets or shows.
pub(super) fn find(statement: &str, places: &mut Places) {
    find_in_commands(statement, places);
    let sql = Sql { text: statement, sets: is_one_of(first_word(statement), &DEFINITIONS) };
    let mut at = 0;
    while let Some(keyword) = next_keyword(statement, at) {
        at = match keyword {
            Keyword::Password(end) => sql.after_password(end, places),
            Keyword::Identified(end) => sql.after_identified(end, places),
        };
    }
}

/// Whether there is no password to blank in a statement.
pub(crate) fn is_plain_statement(statement: &str) -> bool {
    let mut places = Places::new();
    find(statement, &mut places);
    places.is_empty()
}

enum Keyword {
    /// `PASSWORD` or a word that ends in it, which ends here.
    Password(usize),
    /// `IDENTIFIED`, which ends here.
    Identified(usize),
}

/// The first keyword that ends behind a place.
fn next_keyword(text: &str, from: usize) -> Option<Keyword> {
    let bytes = text.as_bytes();
    let stands = |word: &[u8], end: usize| {
        end <= bytes.len() && bytes.get(end).is_none_or(|byte| !is_word_byte(*byte)) && {
            let start = end - word.len();
            start >= from && bytes[start..end].eq_ignore_ascii_case(word)
        }
    };
    (from..bytes.len()).find_map(|at| match bytes[at] {
        // The rarest letters of both words.
        b'w' | b'W' if at >= 4 && stands(b"password", at + 4) => Some(Keyword::Password(at + 4)),
        b'f' | b'F' if at >= 6 && stands(b"identified", at + 4) => Some(Keyword::Identified(at + 4)),
        _ => None,
    })
}

struct Sql<'a> {
    text: &'a str,
    /// Whether `password = 'x'` sets a password.
    sets: bool,
}

impl Sql<'_> {
    /// `PASSWORD 'x'`, `PASSWORD('x')` and, where passwords are set, `PASSWORD = 'x'` and `PASSWORD FOR u = 'x'`.
    fn after_password(&self, end: usize, places: &mut Places) -> usize {
        let mut at = self.skip(end, |byte| byte.is_ascii_whitespace() || byte == b'(');
        if self.sets {
            if let Some(assigned) = self.assigned(at) {
                at = assigned;
            }
            at = self.skip(at, |byte| byte.is_ascii_whitespace() || b"=:(".contains(&byte));
        }
        match self.literal(at) {
            Some((content, after)) => {
                places.push(content);
                after
            }
            None => end,
        }
    }

    /// Behind the `=` of `FOR user = …`.
    fn assigned(&self, at: usize) -> Option<usize> {
        let (word, after) = self.word(at)?;
        if !word.eq_ignore_ascii_case("for") {
            return None;
        }
        let mut at = after;
        for _ in 0..CLAUSE_MAX {
            at = self.skip(at, |byte| byte.is_ascii_whitespace() || b"@().".contains(&byte));
            match self.text.as_bytes().get(at)? {
                b'=' => return Some(at + 1),
                _ => at = self.literal(at).map(|(_, after)| after).or_else(|| Some(self.word(at)?.1))?,
            }
        }
        None
    }

    /// `IDENTIFIED [WITH plugin] BY 'x'` and the like, to the end of the clause.
    fn after_identified(&self, end: usize, places: &mut Places) -> usize {
        let (mut at, mut last) = (end, "");
        for _ in 0..CLAUSE_MAX {
            at = self.skip(at, |byte| byte.is_ascii_whitespace() || b"()".contains(&byte));
            let is_password = is_one_of(last, &BEFORE_PASSWORD);
            if let Some((content, after)) = self.literal(at) {
                if is_password {
                    places.push(content);
                }
                (at, last) = (after, "");
                continue;
            }
            let Some((word, after)) = self.word(at) else { return at };
            if is_password && !is_one_of(word, &OF_CLAUSE) {
                places.push(after - word.len()..after);
                (at, last) = (after, "");
            } else {
                (at, last) = (after, word);
            }
        }
        at
    }

    fn skip(&self, from: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[from..];
        from + rest.iter().take_while(|byte| is_skipped(**byte)).count()
    }

    /// A word and where it ends.
    fn word(&self, at: usize) -> Option<(&str, usize)> {
        let end = self.skip(at, |byte| is_word_byte(byte) || byte == b'$' || !byte.is_ascii());
        (end > at).then(|| (&self.text[at..end], end))
    }

    /// The content of a literal in quotes or between dollars, perhaps after a prefix such as `E`, and where it ends. One
    /// that is cut off ends with the statement.
    fn literal(&self, at: usize) -> Option<(Range<usize>, usize)> {
        let bytes = self.text.as_bytes();
        let prefix = self.skip(at, is_word_byte) - at;
        let start = if bytes.get(at + prefix).is_some_and(|byte| is_quote(*byte)) { at + prefix } else { at };
        match *bytes.get(start)? {
            quote if is_quote(quote) => Some(self.quoted(start + 1, quote)),
            b'$' => {
                let tag = 2 + self.text[start + 1..].bytes().take(TAG_BYTES_MAX).position(|byte| byte == b'$')?;
                let tag = self.text.get(start..start + tag)?;
                let from = start + tag.len();
                let length = self.text[from..].find(tag);
                let end = length.map_or(bytes.len(), |length| from + length);
                Some((from..end, length.map_or(end, |_| end + tag.len())))
            }
            _ => None,
        }
    }

    /// A quote within a literal is doubled or has a backslash before it.
    fn quoted(&self, start: usize, quote: u8) -> (Range<usize>, usize) {
        let bytes = self.text.as_bytes();
        let mut at = start;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' => at += 2,
                // At the beginning, two quotes are an empty literal and three begin with a quote.
                byte if byte == quote
                    && bytes.get(at + 1) == Some(&quote)
                    && (at > start || bytes.get(at + 2) == Some(&quote)) =>
                {
                    at += 2;
                }
                byte if byte == quote => return (start..at, at + 1),
                _ => at += 1,
            }
        }
        (start..bytes.len(), bytes.len())
    }
}

/// The passwords in commands of Redis, a line each.
fn find_in_commands(statement: &str, places: &mut Places) {
    // A column may be called `auth`.
    if is_one_of(first_word(statement), &QUERIES) {
        return;
    }
    let mut offset = 0;
    for line in statement.split_inclusive('\n') {
        find_in_command(line.trim_end(), offset, places);
        offset += line.len();
    }
}

fn find_in_command(line: &str, offset: usize, places: &mut Places) {
    let begin = line.len() - line.trim_start().len();
    let command = first_word(line);
    if !is_one_of(command, &COMMANDS) {
        return;
    }
    let mut at = begin + command.len();
    let mut before = command;
    while let Some(word) = line[at..].split_ascii_whitespace().next() {
        // Both are parts of one text.
        let start = at + line[at..].len() - line[at..].trim_ascii_start().len();
        let is_auth = ["auth", "auth2"].iter().any(|auth| before.eq_ignore_ascii_case(auth));
        if is_auth {
            places.push(offset + start..offset + line.len());
            return;
        }
        let is_of_acl = command.eq_ignore_ascii_case("acl") && word.starts_with(['>', '<', '#', '!']);
        if is_of_acl {
            places.push(offset + start + 1..offset + start + word.len());
        } else if is_one_of(before, &SETTINGS) || ends_in(before, "password") {
            places.push(offset + start..offset + start + word.len());
        }
        at = start + word.len();
        before = word;
    }
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    text.split(|c: char| c.is_whitespace()).next().unwrap_or_default()
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'\'' | b'"' | b'`')
}
