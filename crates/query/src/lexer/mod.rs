//! Cuts a query into words.
//!
//! The text in `datetime(…)`, `timespan(…)` and `dynamic(…)` follows no rule of the language, so the lexer takes it
//! whole. It knows no keywords: which word means what is the parser's business, for KQL lets most of them be names.

mod strings;

use crate::error::{Fault, TextRange};
use crate::literal;

/// One word.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) place: TextRange,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A name or a keyword.
    Name(String),
    /// A string, without its quotation marks and escapes.
    Text(String),
    Long(i64),
    Real(f64),
    /// A length of time, in nanoseconds.
    Span(i64),
    /// Text within `datetime(…)`, `timespan(…)`, `dynamic(…)` or `guid(…)`.
    Raw(Raw, String),
    Symbol(&'static str),
    /// The end of the text.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raw {
    Datetime,
    Timespan,
    Dynamic,
    Guid,
}

/// The longest first, so that `==` is not two of `=`.
const SYMBOLS: [&str; 30] = [
    "==", "=~", "!=", "!~", "<=", ">=", "=>", "<>", "..", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]",
    "{", "}", ",", ";", "|", ".", ":", "!", "~",
];

/// Cuts a text into tokens, of which the last is the end.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next()?;
        let is_end = token.kind == Kind::End;
        tokens.push(token);
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn from(&self, start: usize) -> TextRange {
        TextRange { start, end: self.at }
    }

    fn skip_blanks(&mut self) {
        loop {
            self.take_while(|c| c.is_whitespace() || c == '\u{feff}');
            if !self.rest().starts_with("//") {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn next(&mut self) -> Result<Token, Fault> {
        self.skip_blanks();
        let start = self.at;
        let kind = match self.peek() {
            None => Kind::End,
            Some(c) if c.is_ascii_digit() => self.number()?,
            Some('"' | '\'') => self.string()?,
            Some('@') if self.rest()[1..].starts_with(['"', '\'']) => self.verbatim()?,
            Some('h' | 'H') if self.rest()[1..].starts_with(['"', '\'']) => {
                self.at += 1;
                self.string()?
            }
            Some('h' | 'H') if self.rest()[1..].starts_with("@\"") || self.rest()[1..].starts_with("@'") => {
                self.at += 1;
                self.verbatim()?
            }
            Some('`') if self.rest().starts_with("```") => self.fenced()?,
            Some(c) if is_name_start(c) => self.name()?,
            Some(c) => self.symbol(c)?,
        };
        Ok(Token { kind, place: self.from(start) })
    }

    fn symbol(&mut self, first: char) -> Result<Kind, Fault> {
        match SYMBOLS.into_iter().find(|symbol| self.rest().starts_with(symbol)) {
            Some(symbol) => {
                self.at += symbol.len();
                Ok(Kind::Symbol(symbol))
            }
            None => {
                let place = TextRange { start: self.at, end: self.at + first.len_utf8() };
                Err(Fault::new(place, format!("`{}` has no meaning here", first.escape_debug())))
            }
        }
    }

    fn name(&mut self) -> Result<Kind, Fault> {
        let start = self.at;
        self.at += self.peek().map_or(0, char::len_utf8);
        self.take_while(is_name_part);
        let name = &self.text[start..self.at];
        let raw = match name {
            "datetime" | "date" => Raw::Datetime,
            "timespan" | "time" => Raw::Timespan,
            "dynamic" => Raw::Dynamic,
            "guid" => Raw::Guid,
            _ => return Ok(Kind::Name(name.to_owned())),
        };
        let blanks = self.rest().len() - self.rest().trim_start().len();
        if !self.rest()[blanks..].starts_with('(') {
            return Ok(Kind::Name(name.to_owned()));
        }
        let open = self.at + blanks;
        match closing_parenthesis(&self.text[open..]) {
            Some(length) => {
                self.at = open + length + 1;
                Ok(Kind::Raw(raw, self.text[open + 1..open + length].trim().to_owned()))
            }
            None => Err(Fault::new(TextRange { start: open, end: open + 1 }, format!("`{name}(` is never closed"))),
        }
    }

    /// A whole number, one with a fraction, or a length of time.
    fn number(&mut self) -> Result<Kind, Fault> {
        let start = self.at;
        if let Some(digits) = self.rest().strip_prefix("0x").or_else(|| self.rest().strip_prefix("0X")) {
            let length = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
            self.at += 2 + length;
            return match u64::from_str_radix(&digits[..length], 16) {
                Ok(value) => Ok(Kind::Long(value.cast_signed())),
                Err(_) => Err(Fault::new(self.from(start), "this hexadecimal number does not fit 64 bits")),
            };
        }
        self.take_while(|c| c.is_ascii_digit());
        let mut is_whole = true;
        // `1.5` and `1.` are numbers; `1..5` is a range, and `1.a` accesses a member of 1.
        if self.rest().starts_with('.') && !self.rest()[1..].starts_with(|c: char| c == '.' || is_name_start(c)) {
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
            is_whole = false;
        }
        if let Some(length) = exponent(self.rest()) {
            self.at += length;
            is_whole = false;
        }
        let digits = &self.text[start..self.at];
        let unit = self.take_while(is_name_part);
        if !unit.is_empty() {
            return self.timespan(start, digits, unit);
        }
        if is_whole {
            let whole = digits.parse().map(Kind::Long);
            return whole.map_err(|_| Fault::new(self.from(start), format!("`{digits}` does not fit 64 bits")));
        }
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Kind::Real(value)),
            _ => Err(Fault::new(self.from(start), format!("`{digits}` is too large a number"))),
        }
    }

    fn timespan(&self, start: usize, digits: &str, unit: &str) -> Result<Kind, Fault> {
        let Some(unit_ns) = literal::unit_ns(unit) else {
            let message = format!("`{unit}` is no unit of time, and a name cannot begin with a digit");
            return Err(Fault::new(self.from(start), message)
                .hint("units are d, h, m, s, ms, microsecond and tick, such as in `5m`"));
        };
        let too_long = || Fault::new(self.from(start), "this length of time is over 292 years");
        literal::times(digits, unit_ns).map(Kind::Span).ok_or_else(too_long)
    }
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How long the `e+10` at the start of a text is.
fn exponent(text: &str) -> Option<usize> {
    let after = text.strip_prefix(['e', 'E'])?;
    let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
    let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    (length > 0).then_some(text.len() - digits.len() + length)
}

/// Where the parenthesis that opens a text is closed. Those within strings do not count.
fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') if depth == 1 => return Some(at),
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    fn one(text: &str) -> Kind {
        let mut kinds = kinds(text);
        assert_eq!(kinds.len(), 2, "{kinds:?}");
        kinds.remove(0)
    }

    #[test]
    fn strings_in_all_their_forms() {
        for (text, wanted) in [
            (r#""a\"b\\\n""#, "a\"b\\\n"),
            (r"'it''s'", "it"),
            (r#"@"c:\a""b""#, "c:\\a\"b"),
            (r#"h"secret""#, "secret"),
            (r"H@'x\y'", "x\\y"),
            (r#""\u00e9\x41""#, "éA"),
            ("```a\nb```", "a\nb"),
        ] {
            assert_eq!(kinds(text)[0], Kind::Text(wanted.to_owned()), "{text}");
        }
    }

    #[test]
    fn numbers_and_lengths_of_time() {
        let second = 1_000_000_000;
        for (text, wanted) in [
            ("42", Kind::Long(42)),
            ("0x1F", Kind::Long(31)),
            ("1.5", Kind::Real(1.5)),
            ("2e3", Kind::Real(2000.0)),
            ("100.", Kind::Real(100.0)),
            ("1d", Kind::Span(86_400 * second)),
            ("1.5h", Kind::Span(5_400 * second)),
            ("100ms", Kind::Span(second / 10)),
            ("10microsecond", Kind::Span(10_000)),
            ("1tick", Kind::Span(100)),
        ] {
            assert_eq!(one(text), wanted, "{text}");
        }
        assert_eq!(kinds("1..5")[1], Kind::Symbol(".."));
    }

    #[test]
    fn what_typed_literals_enclose_is_taken_whole() {
        assert_eq!(one("datetime(2020-06-18 20:59)"), Kind::Raw(Raw::Datetime, "2020-06-18 20:59".into()));
        assert_eq!(one(r#"dynamic({"a": ")"})"#), Kind::Raw(Raw::Dynamic, r#"{"a": ")"}"#.into()));
        assert_eq!(kinds("t:datetime)")[2], Kind::Name("datetime".into()));
    }

    #[test]
    fn what_is_no_word_is_reported_with_its_place() {
        for (text, start, message) in [
            ("a \"b", 2, "this string is never closed"),
            ("5 q", 99, ""),
            ("a # b", 2, "`#` has no meaning here"),
            ("5q", 0, "`q` is no unit of time, and a name cannot begin with a digit"),
            (r#""\q""#, 1, "this escape is unknown"),
            (r#""\u0000""#, 0, "a string cannot hold the character NUL"),
            ("99999999999999999999", 0, "`99999999999999999999` does not fit 64 bits"),
            ("999999999d", 0, "this length of time is over 292 years"),
            ("datetime(2020", 8, "`datetime(` is never closed"),
        ] {
            match tokens(text) {
                Ok(_) => assert_eq!(start, 99, "{text}"),
                Err(fault) => assert_eq!((fault.place.start, fault.message.as_str()), (start, message), "{text}"),
            }
        }
    }
}
