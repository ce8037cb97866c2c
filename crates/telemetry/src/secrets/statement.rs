//! Finds passwords in database statements that set or show them: SQL of PostgreSQL, MySQL, MariaDB, SQL Server, Oracle,
//! Redshift and Snowflake, and the commands of Redis and MongoDB.
//!
//! The search looks at the text after a keyword, wherever the keyword is, and ignores literals around it: a statement
//! that is cut or quoted in an unknown dialect must not hide the rest. Values that a statement compares or stores are
//! kept (`WHERE password = 'x'`), because their name does not show whether they are secrets. Connection strings in
//! literals are searched as free text.

use std::ops::Range;

use super::decoding::DecodedText;
use super::keys::{ends_in, is_secret_key};
use super::{Places, marks, text};

/// First words of statements in which `password = 'x'` sets a password.
const DEFINITIONS: [&str; 8] = ["alter", "attach", "change", "copy", "create", "grant", "set", "unload"];
/// MongoDB commands that hold passwords.
const MONGO_COMMANDS: [&str; 4] = ["authenticate", "createuser", "updateuser", "changeuserpassword"];
/// The longest name of a MongoDB command, and the longest name of a secret, in bytes.
const NAME_BYTES_MAX: usize = 128;
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
    if !marks::may_hold_password(statement) {
        return;
    }
    find_as_written(statement, places);
    for decoded in [DecodedText::without_comments(statement), DecodedText::of(statement)].into_iter().flatten() {
        let mut found = Places::new();
        find_as_written(&decoded.text, &mut found);
        places.extend(found.into_iter().filter(|place| !place.is_empty()).map(|place| decoded.place(place)));
    }
    find_in_literals(statement, places);
    if is_mongo(statement) {
        text::find(statement, places);
    }
}

/// Finds SQL passwords in free text, such as a log line that quotes a statement.
pub(super) fn find_in_text(text: &str, places: &mut Places) {
    if marks::may_hold_password(text) {
        find_as_written(text, places);
    }
}

fn find_as_written(statement: &str, places: &mut Places) {
    let sql = Sql { text: statement, sets: is_one_of(first_word(statement), &DEFINITIONS) };
    let mut at = 0;
    while let Some(keyword) = next_keyword(statement, at) {
        at = match keyword {
            Keyword::Password(word) => sql.after_password(word, places),
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

/// Whether a text is a MongoDB command that holds a password: `{ createUser: "u", pwd: "x" }`, `db.auth("u", "x")`.
fn is_mongo(statement: &str) -> bool {
    let words = statement.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut first = words.take_while(|word| word.len() <= NAME_BYTES_MAX).take(4);
    first.any(|word| is_one_of(word, &MONGO_COMMANDS))
}

/// Finds the secrets in literals, such as `CONNECTION 'host=h password=x'`.
fn find_in_literals(statement: &str, places: &mut Places) {
    let sql = Sql { text: statement, sets: false };
    let mut at = 0;
    while let Some(start) = statement.as_bytes()[at..].iter().position(|byte| is_quote(*byte)) {
        let (content, after) = sql.quoted(at + start + 1, statement.as_bytes()[at + start]);
        let mut found = Places::new();
        text::find(&statement[content.clone()], &mut found);
        places.extend(found.into_iter().map(|place| content.start + place.start..content.start + place.end));
        at = after;
    }
}

enum Keyword {
    /// A word that names a secret, and its place.
    Password(Range<usize>),
    /// `IDENTIFIED`, which ends here.
    Identified(usize),
}

/// The first keyword that ends behind a place.
fn next_keyword(text: &str, from: usize) -> Option<Keyword> {
    let bytes = text.as_bytes();
    let mut end = from;
    loop {
        let start = end + bytes.get(end..)?.iter().position(|byte| is_word_byte(*byte))?;
        end = start + bytes[start..].iter().take_while(|byte| is_word_byte(**byte)).count();
        // Only the end of a longer word is compared.
        let word = &text[start.max(end.saturating_sub(NAME_BYTES_MAX))..end];
        if word.eq_ignore_ascii_case("identified") {
            return Some(Keyword::Identified(end));
        }
        if is_secret_key(word) {
            return Some(Keyword::Password(start..end));
        }
    }
}

struct Sql<'a> {
    text: &'a str,
    /// Whether `password = 'x'` sets a password.
    sets: bool,
}

impl Sql<'_> {
    /// `PASSWORD 'x'`, `PASSWORD('x')` and, where passwords are set, `PASSWORD = 'x'` and `PASSWORD FOR u = 'x'`.
    fn after_password(&self, word: Range<usize>, places: &mut Places) -> usize {
        let bytes = self.text.as_bytes();
        let quote = bytes.get(word.end).copied().filter(|byte| is_quote(*byte));
        // The word may be the name of a column, perhaps in quotes.
        let is_quoted = quote.is_some() && word.start.checked_sub(1).map(|before| bytes[before]) == quote;
        let end = word.end + usize::from(is_quoted);
        let mut at = self.skip(end, |byte| byte.is_ascii_whitespace() || byte == b'(');
        if self.sets {
            if let Some(assigned) = self.assigned(at) {
                at = assigned;
            }
            at = self.skip(at, |byte| byte.is_ascii_whitespace() || b"=:(".contains(&byte));
        }
        // A quote directly after the word ends an earlier literal. A name in double quotes is an alias.
        let is_literal = at > end && (self.sets || !matches!(bytes.get(at), Some(b'"' | b'`')));
        match self.literal(at).filter(|_| is_literal) {
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
