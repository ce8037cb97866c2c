//! Strings: with escapes, verbatim, and over several lines.

use super::{Kind, Lexer};
use crate::error::{Fault, TextRange};

impl Lexer<'_> {
    fn unclosed(&self, start: usize) -> Fault {
        Fault::new(TextRange { start, end: start + 1 }, "this string is never closed")
    }

    pub(super) fn string(&mut self) -> Result<Kind, Fault> {
        let start = self.at;
        let quote = self.rest().chars().next();
        self.at += 1;
        let mut value = String::new();
        loop {
            let Some(c) = self.peek() else { return Err(self.unclosed(start)) };
            self.at += c.len_utf8();
            match c {
                '\n' | '\r' => return Err(self.unclosed(start)),
                '\\' => value.push(self.escape()?),
                c if Some(c) == quote => return self.text_of(start, value),
                c => value.push(c),
            }
        }
    }

    /// SQLite ends its text at a NUL, so that none may pass.
    fn text_of(&self, start: usize, value: String) -> Result<Kind, Fault> {
        if value.contains('\0') {
            return Err(Fault::new(self.from(start), "a string cannot hold the character NUL"));
        }
        Ok(Kind::Text(value))
    }

    /// The character that an escape stands for; the backslash is behind us.
    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at - 1;
        let letter = self.peek();
        self.at += letter.map_or(0, char::len_utf8);
        match letter {
            Some(c @ ('\\' | '"' | '\'')) => Ok(c),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('a') => Ok('\u{7}'),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('v') => Ok('\u{b}'),
            Some('u') => self.coded(start, 4),
            Some('U') => self.coded(start, 8),
            Some('x') => self.coded(start, 2),
            _ => Err(Fault::new(self.from(start), "this escape is unknown")
                .hint(r#"write a backslash as `\\`, or the string as @"…""#)),
        }
    }

    fn coded(&mut self, start: usize, length: usize) -> Result<char, Fault> {
        let digits = self.rest().get(..length).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let character = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        match character {
            Some(character) => {
                self.at += length;
                Ok(character)
            }
            None => Err(Fault::new(self.from(start), format!("this escape needs {length} hexadecimal digits"))),
        }
    }

    /// `@"…"`, in which only a doubled quotation mark means something else.
    pub(super) fn verbatim(&mut self) -> Result<Kind, Fault> {
        let start = self.at;
        let quote = if self.rest()[1..].starts_with('"') { '"' } else { '\'' };
        self.at += 2;
        let mut value = String::new();
        loop {
            value.push_str(self.take_while(|c| c != quote));
            if self.peek().is_none() {
                return Err(self.unclosed(start));
            }
            self.at += 1;
            if self.peek() != Some(quote) {
                return self.text_of(start, value);
            }
            self.at += 1;
            value.push(quote);
        }
    }

    /// Text of several lines between three backticks.
    pub(super) fn fenced(&mut self) -> Result<Kind, Fault> {
        let start = self.at;
        match self.rest()[3..].find("```") {
            Some(length) => {
                self.at += 3 + length + 3;
                self.text_of(start, self.text[start + 3..start + 3 + length].to_owned())
            }
            None => Err(self.unclosed(start)),
        }
    }
}
