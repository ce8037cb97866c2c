//! The shape of a SQL query: its text without the values.
//!
//! A scanner, not a parser: statements arrive truncated, in any dialect, sometimes not in SQL at all. Literals and
//! placeholders of every style become `?`, a list of values after `IN` becomes `(?+)`, equal row groups after `VALUES`
//! become one group and a `+`, comments go, white space becomes one space. Identifiers and keywords stay as written.
//!
//! Strings honour doubled quotes and backslashes, as MySQL does; a PostgreSQL string that ends in a backslash blends
//! with what follows, which at worst merges two shapes. Text in double quotes is an identifier. `#` is an operator, as
//! in PostgreSQL, not a comment.

use std::collections::HashSet;

/// A statement with `?` for every value.
pub fn statement_shape(statement: &str) -> String {
    SqlShape::parse(statement).text
}

/// A query without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqlShape {
    /// The statement with `?` for every value.
    pub text: String,
    /// Number of literal values in the statement.
    pub literals: usize,
    /// Number of placeholders in the statement.
    pub placeholders: usize,
    /// The longest list of values after `IN` and the largest number of row groups after `VALUES`; 0 without either.
    pub values_max: usize,
    /// Its keywords and names without quotes, in capitals.
    pub words: HashSet<String>,
    /// True if it skips rows, as far as it says: an offset that is not written as 0.
    skips: bool,
    /// True if it selects by a value that a column must have.
    selects_by_value: bool,
}

impl SqlShape {
    /// The shape of a statement. Never fails; what cannot be read stays as it is.
    pub(crate) fn parse(statement: &str) -> Self {
        let mut scanner = Scanner::new(statement);
        scanner.scan();
        let (literals, placeholders) = (scanner.literals, scanner.placeholders);
        let skips = has_offset(&scanner.tokens) && !scanner.begins_at_zero;
        let selects_by_value = selects_by_value(&scanner.tokens);
        let (tokens, values_max) = fold_lists(scanner.tokens);
        let words = tokens.iter().filter(|t| t.kind == Kind::Word).map(|t| t.text.to_ascii_uppercase()).collect();
        Self { text: print(&tokens), literals, placeholders, values_max, words, skips, selects_by_value }
    }

    /// True if it selects several rows by a list of their keys, or writes several rows: a batch.
    pub(crate) fn is_batch(&self) -> bool {
        self.values_max > 1 || self.words.contains("ANY") || self.words.contains("UNNEST")
    }

    /// True if it reads on where an earlier statement stopped: by offset, by cursor, or past the last key seen. Object
    /// mappers put an offset after look-ups too, so it counts where rows are ordered or nothing else selects them.
    pub(crate) fn is_page(&self) -> bool {
        let has = |word: &str| self.words.contains(word);
        let is_bounded = has("LIMIT") || has("FETCH") || has("TOP");
        let is_past_a_key = ["> ?", "< ?", ">?", "<?"].iter().any(|sign| self.text.contains(sign));
        let skips = self.skips && (has("ORDER") || !self.selects_by_value);
        skips || self.first_word() == "FETCH" || (is_bounded && has("ORDER") && is_past_a_key)
    }

    /// True if it changes rows.
    pub(crate) fn is_write(&self) -> bool {
        matches!(self.first_word().as_str(), "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "REPLACE" | "UPSERT")
    }

    /// True if it only steers the connection or the transaction, or checks whether the database is there.
    pub(crate) fn is_housekeeping(&self) -> bool {
        const WORDS: [&str; 16] = [
            "BEGIN",
            "START",
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT",
            "RELEASE",
            "SET",
            "RESET",
            "DISCARD",
            "DEALLOCATE",
            "PRAGMA",
            "SHOW",
            "USE",
            "PING",
            "CLOSE",
            "END",
        ];
        WORDS.contains(&self.first_word().as_str()) || self.text.eq_ignore_ascii_case("select ?")
    }

    /// Its first word in capitals; empty when it begins with something else.
    pub(crate) fn first_word(&self) -> String {
        let word: String = self.text.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
        word.to_ascii_uppercase()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Value,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    kind: Kind,
    text: String,
    spaced: bool,
}

impl Token {
    fn tight(text: &str) -> Self {
        let kind = if text == "?" { Kind::Value } else { Kind::Other };
        Self { kind, text: text.into(), spaced: false }
    }
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    spaced: bool,
    tokens: Vec<Token>,
    literals: usize,
    placeholders: usize,
    /// True if an offset is written as 0.
    begins_at_zero: bool,
}

impl Scanner {
    fn new(statement: &str) -> Self {
        let chars = statement.chars().collect();
        Self { chars, at: 0, spaced: false, tokens: Vec::new(), literals: 0, placeholders: 0, begins_at_zero: false }
    }

    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn scan(&mut self) {
        while self.at < self.chars.len() {
            let before = self.at;
            if !self.blank() && !self.literal() && !self.placeholder() && !self.word() {
                self.other();
            }
            debug_assert!(self.at > before);
        }
    }

    fn push(&mut self, kind: Kind, text: String) {
        self.tokens.push(Token { kind, text, spaced: self.spaced });
        self.spaced = false;
    }

    fn push_literal(&mut self, end: usize) -> bool {
        let end = end.min(self.chars.len());
        self.begins_at_zero |= self.chars[self.at..end] == ['0'] && self.tokens.last().is_some_and(is_before_offset);
        self.at = end;
        self.literals += 1;
        self.push(Kind::Value, "?".into());
        true
    }

    fn push_placeholder(&mut self, length: usize) -> bool {
        self.at += length;
        self.placeholders += 1;
        self.push(Kind::Value, "?".into());
        true
    }

    /// White space and comments.
    fn blank(&mut self) -> bool {
        let length = match (self.peek(0), self.peek(1)) {
            (c, _) if c.is_whitespace() => 1,
            ('-', '-') => self.chars[self.at..].iter().take_while(|c| **c != '\n').count(),
            ('/', '*') => self.find(self.at + 2, &['*', '/']) - self.at,
            _ => return false,
        };
        self.at += length;
        self.spaced = true;
        true
    }

    /// The position after the next occurrence of `end`, or the end of the text.
    fn find(&self, from: usize, end: &[char]) -> usize {
        let rest = self.chars.get(from..).unwrap_or_default();
        rest.windows(end.len()).position(|window| window == end).map_or(self.chars.len(), |at| from + at + end.len())
    }

    fn literal(&mut self) -> bool {
        let c = self.peek(0);
        let is_prefixed = matches!(c, 'e' | 'E' | 'n' | 'N' | 'x' | 'X' | 'b' | 'B') && self.peek(1) == '\'';
        match c {
            '\'' => self.push_literal(self.string_end(self.at + 1)),
            _ if is_prefixed => self.push_literal(self.string_end(self.at + 2)),
            '$' => self.dollar_quoted(),
            '-' | '+' if self.is_sign() && is_number_start(self.peek(1), self.peek(2)) => {
                self.push_literal(self.number_end(self.at + 1))
            }
            '.' if self.follows_a_name() => false,
            _ if is_number_start(c, self.peek(1)) => self.push_literal(self.number_end(self.at)),
            _ => false,
        }
    }

    fn string_end(&self, mut at: usize) -> usize {
        while at < self.chars.len() {
            match (self.chars[at], self.chars.get(at + 1)) {
                ('\\', _) | ('\'', Some('\'')) => at += 2,
                ('\'', _) => return at + 1,
                _ => at += 1,
            }
        }
        at
    }

    fn number_end(&self, mut at: usize) -> usize {
        while let Some(&c) = self.chars.get(at) {
            let is_exponent_sign = matches!(c, '+' | '-') && matches!(self.chars[at - 1], 'e' | 'E');
            if !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || is_exponent_sign) {
                break;
            }
            at += 1;
        }
        at
    }

    /// PostgreSQL's `$$ … $$` and `$tag$ … $tag$`.
    fn dollar_quoted(&mut self) -> bool {
        let tag = self.chars[self.at + 1..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
        if self.peek(tag + 1) != '$' || self.peek(1).is_ascii_digit() {
            return false;
        }
        let quote = self.chars[self.at..self.at + tag + 2].to_vec();
        self.push_literal(self.find(self.at + quote.len(), &quote))
    }

    /// True if a sign here belongs to the number after it rather than to a difference or a sum.
    fn is_sign(&self) -> bool {
        self.tokens.last().is_some_and(|token| matches!(token.text.as_str(), "(" | "," | "=" | "<" | ">"))
    }

    fn follows_a_name(&self) -> bool {
        let ends_a_name = |t: &Token| t.kind != Kind::Other || t.text.ends_with(['"', '`', ']', ')']);
        !self.spaced && self.tokens.last().is_some_and(ends_a_name)
    }

    fn placeholder(&mut self) -> bool {
        let word_from = |ahead: usize| self.chars[self.at + ahead..].iter().take_while(|c| is_word(**c)).count();
        match (self.peek(0), self.peek(1)) {
            ('?', _) => self.push_placeholder(1),
            ('$', next) if next.is_ascii_digit() => {
                let digits = self.chars[self.at + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
                self.push_placeholder(1 + digits)
            }
            ('%', 's') if !is_word(self.peek(2)) => self.push_placeholder(2),
            ('%', '(') => {
                let length = word_from(2);
                let closes = (self.peek(2 + length), self.peek(3 + length)) == (')', 's');
                length > 0 && closes && self.push_placeholder(4 + length)
            }
            (':' | '@', next) if is_word(next) && !self.follows_a_name() => {
                let length = word_from(1);
                self.push_placeholder(1 + length)
            }
            _ => false,
        }
    }

    fn word(&mut self) -> bool {
        let length = self.chars[self.at..].iter().take_while(|c| is_word(**c)).count();
        if length > 0 {
            let text = self.chars[self.at..self.at + length].iter().collect();
            self.at += length;
            self.push(Kind::Word, text);
        }
        length > 0
    }

    /// Quoted identifiers, `::` and `@@`, and whatever else, one character each.
    fn other(&mut self) {
        let c = self.peek(0);
        let end = match (c, self.peek(1)) {
            ('"' | '`', _) => self.find(self.at + 1, &[c]),
            (':', ':') | ('@', '@') => self.at + 2,
            _ => self.at + 1,
        };
        let text = self.chars[self.at..end].iter().collect();
        self.at = end;
        self.push(Kind::Other, text);
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn is_number_start(first: char, second: char) -> bool {
    first.is_ascii_digit() || (first == '.' && second.is_ascii_digit())
}

/// A list of values at the head of some tokens.
struct List {
    /// Number of tokens in the list.
    tokens: usize,
    /// Number of values or row groups.
    values: usize,
    /// Tokens that replace the list in the shape.
    folded: Vec<Token>,
}

/// Folds lists of values; also gives the length of the longest.
fn fold_lists(tokens: Vec<Token>) -> (Vec<Token>, usize) {
    let mut folded: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut values_max = 0;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let rest = &tokens[at..];
        let list = match token.kind {
            Kind::Word if token.text.eq_ignore_ascii_case("in") => value_list(rest),
            Kind::Word if token.text.eq_ignore_ascii_case("values") => row_groups(rest),
            _ => None,
        };
        folded.push(token.clone());
        if let Some(list) = list {
            values_max = values_max.max(list.values);
            folded.extend(list.folded);
            at += list.tokens;
        }
    }
    (folded, values_max)
}

/// `( ? , ? … )`, folded to `(?+)`.
fn value_list(tokens: &[Token]) -> Option<List> {
    let close = tokens.iter().position(|token| token.text == ")")?;
    let is_list = close >= 2
        && close.is_multiple_of(2)
        && tokens[0].text == "("
        && tokens[1..close].iter().enumerate().all(|(i, token)| match i % 2 {
            0 => token.kind == Kind::Value,
            _ => token.text == ",",
        });
    let folded = || vec![tokens[0].clone(), Token::tight("?"), Token::tight("+"), Token::tight(")")];
    is_list.then(|| List { tokens: close + 1, values: close / 2, folded: folded() })
}

/// Equal groups `( … ) , ( … )`, folded to the first and, if there are more, a `+`.
fn row_groups(tokens: &[Token]) -> Option<List> {
    let first = group_length(tokens)?;
    let mut length = first;
    let mut groups = 1;
    while tokens.get(length).is_some_and(|token| token.text == ",") {
        let next = &tokens[length + 1..];
        let is_equal = group_length(next) == Some(first)
            && next.iter().zip(tokens).take(first).all(|(one, other)| one.text == other.text);
        if !is_equal {
            break;
        }
        length += first + 1;
        groups += 1;
    }
    let mut folded = tokens[..first].to_vec();
    if groups > 1 {
        folded.push(Token::tight("+"));
    }
    Some(List { tokens: length, values: groups, folded })
}

fn group_length(tokens: &[Token]) -> Option<usize> {
    if tokens.first()?.text != "(" {
        return None;
    }
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// True if an offset may follow: `OFFSET 20`, or MySQL's `LIMIT 20, 10`.
fn is_before_offset(token: &Token) -> bool {
    token.kind == Kind::Word && ["OFFSET", "LIMIT"].iter().any(|word| token.text.eq_ignore_ascii_case(word))
}

/// True if a number of rows to skip is given. A column may be named `offset`, so a value must follow.
fn has_offset(tokens: &[Token]) -> bool {
    let is_offset = |pair: &[Token]| {
        pair[0].text.eq_ignore_ascii_case("offset") && is_before_offset(&pair[0]) && pair[1].kind == Kind::Value
    };
    let is_pair = |four: &[Token]| {
        is_before_offset(&four[0]) && (four[1].kind, four[3].kind) == (Kind::Value, Kind::Value) && four[2].text == ","
    };
    tokens.windows(2).any(is_offset) || tokens.windows(4).any(is_pair)
}

/// True if a name must equal a value; `1=1` selects nothing.
fn selects_by_value(tokens: &[Token]) -> bool {
    let is_name = |token: &Token| token.kind == Kind::Word || token.text.ends_with(['"', '`', ']']);
    tokens.windows(3).any(|three| is_name(&three[0]) && three[1].text == "=" && three[2].kind == Kind::Value)
}

fn print(tokens: &[Token]) -> String {
    let mut text = String::new();
    for token in tokens {
        if token.spaced && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&token.text);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_go_and_names_stay() {
        let cases = [
            ("SELECT * FROM item WHERE id = 42", "SELECT * FROM item WHERE id = ?"),
            (
                "SELECT *\n  FROM item -- all\n WHERE a='it''s' AND b = -1.5e-3",
                "SELECT * FROM item WHERE a=? AND b = ?",
            ),
            (
                "SELECT a FROM t1 WHERE t1.b = $1 AND c = %s AND d = %(name)s",
                "SELECT a FROM t1 WHERE t1.b = ? AND c = ? AND d = ?",
            ),
            ("select x::text from t where y = :id and z = @p0", "select x::text from t where y = ? and z = ?"),
            ("SELECT 1 FROM t WHERE id IN (1, 2,3)", "SELECT ? FROM t WHERE id IN (?+)"),
            ("SELECT 1 FROM t WHERE id in ($1)", "SELECT ? FROM t WHERE id in (?+)"),
            ("WHERE id IN (SELECT id FROM u)", "WHERE id IN (SELECT id FROM u)"),
            ("INSERT INTO t (a, b) VALUES (1, now()), (2, now())", "INSERT INTO t (a, b) VALUES (?, now())+"),
            ("INSERT INTO t VALUES (?, ?)", "INSERT INTO t VALUES (?, ?)"),
            (
                "SELECT \"order\".\"id\" FROM `my table` WHERE a = x'ff' OR b = $tag$ it's $tag$",
                "SELECT \"order\".\"id\" FROM `my table` WHERE a = ? OR b = ?",
            ),
            ("/*traceparent='00-ab'*/ SELECT a - 1, b-2 FROM t", "SELECT a - ?, b-? FROM t"),
            ("SELECT a FROM t WHERE b = 'cut off", "SELECT a FROM t WHERE b = ?"),
            ("GET user:1234", "GET user:?"),
            ("SELECT a[1:2] FROM t WHERE b =:b", "SELECT a[?:?] FROM t WHERE b =?"),
            ("", ""),
        ];
        for (statement, expected) in cases {
            assert_eq!(SqlShape::parse(statement).text, expected, "of {statement}");
        }
    }

    #[test]
    fn batches_pages_and_housekeeping_are_distinguished() {
        // statement, batch, page, housekeeping, write
        let cases = [
            ("SELECT * FROM t WHERE id = ? LIMIT 1", [false, false, false, false]),
            ("SELECT * FROM t WHERE id IN (?)", [false, false, false, false]),
            ("SELECT * FROM t WHERE id IN (?, ?)", [true, false, false, false]),
            ("SELECT * FROM t WHERE id = ANY($1)", [true, false, false, false]),
            ("INSERT INTO t VALUES (1), (2)", [true, false, false, true]),
            ("SELECT * FROM t ORDER BY id LIMIT 10 OFFSET 20", [false, true, false, false]),
            ("SELECT * FROM t WHERE id > $1 ORDER BY id LIMIT 10", [false, true, false, false]),
            ("SELECT * FROM t LIMIT 10 OFFSET 20", [false, true, false, false]),
            ("SELECT * FROM t WHERE 1=1 LIMIT ? OFFSET ?", [false, true, false, false]),
            ("SELECT * FROM t ORDER BY id LIMIT 20, 10", [false, true, false, false]),
            ("SELECT * FROM t WHERE (\"t\".\"id\" = $1 AND 1=1) LIMIT $2 OFFSET $3", [false, false, false, false]),
            ("SELECT * FROM t WHERE a = 7 ORDER BY b LIMIT 1 OFFSET 0", [false, false, false, false]),
            ("SELECT * FROM t WHERE a = @p ORDER BY b OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY", [false; 4]),
            ("SELECT id FROM t WHERE offset = 5 ORDER BY offset LIMIT 1", [false, false, false, false]),
            ("FETCH FORWARD 100 FROM c", [false, true, false, false]),
            ("BEGIN", [false, false, true, false]),
            ("PRAGMA foreign_keys = ON", [false, false, true, false]),
            ("SELECT 1", [false, false, true, false]),
        ];
        for (statement, expected) in cases {
            let shape = SqlShape::parse(statement);
            let got = [shape.is_batch(), shape.is_page(), shape.is_housekeeping(), shape.is_write()];
            assert_eq!(got, expected, "of {statement}");
        }
    }

    #[test]
    fn literals_and_placeholders_are_counted() {
        let shape = SqlShape::parse("SELECT a FROM t WHERE b = 1 AND c = 'x' AND d = $1");
        assert_eq!((shape.literals, shape.placeholders), (2, 1));
        let none = SqlShape::parse("SELECT count(*) FROM t");
        assert_eq!((none.literals, none.placeholders), (0, 0));
    }

    proptest! {
        #[test]
        fn any_text_has_a_shape_and_a_shape_is_its_own(text in any::<String>()) {
            let once = SqlShape::parse(&text).text;
            prop_assert_eq!(&SqlShape::parse(&once).text, &once);
        }

        #[test]
        fn a_shape_of_sql_crumbs_is_its_own(crumbs in prop::collection::vec(prop::sample::select(CRUMBS), 0..14)) {
            let once = SqlShape::parse(&crumbs.concat()).text;
            prop_assert_eq!(&SqlShape::parse(&once).text, &once);
        }

        #[test]
        fn numbers_do_not_change_a_shape(a in any::<i64>(), b in any::<u32>(), text in "[a-z ']{0,12}") {
            let quoted = text.replace('\'', "''");
            let statement = format!("SELECT x FROM t WHERE a = {a} AND b IN ({b}, {b}) AND c = '{quoted}'");
            prop_assert_eq!(SqlShape::parse(&statement).text, "SELECT x FROM t WHERE a = ? AND b IN (?+) AND c = ?");
        }
    }

    const CRUMBS: &[&str] = &[
        "SELECT", " ", "\n", "IN", "VALUES", "(", ")", ",", "1", "-", "+", ".5", "e", "'", "''", "'x'", "\"", "\"a\"",
        "$", "$1", "$$", "a", ":", "::", "@", "%", "%s", "%(", ")s", "?", "/*", "*/", "--", "=", "#", "\\", "`",
        "0x1f", "(?+)",
    ];
}
