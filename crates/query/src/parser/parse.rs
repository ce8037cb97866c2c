//! `parse` and `parse-where`.

use super::Parser;
use crate::error::Fault;
use crate::lexer::Kind;
use crate::syntax::{Parse, ParseKind, ParsePart};
use crate::types::Type;

impl Parser {
    pub(super) fn parse(&mut self, is_filter: bool) -> Result<Parse, Fault> {
        let (mut kind, mut flags) = (ParseKind::Simple, String::new());
        if self.is_option("kind") {
            self.at += 2;
            let word = self.name("a kind of parsing")?;
            kind = match word.text.as_str() {
                "simple" => ParseKind::Simple,
                "regex" => ParseKind::Regex,
                "relaxed" => ParseKind::Relaxed,
                other => {
                    let fault = Fault::new(word.place, format!("`{other}` is no kind of parsing"));
                    return Err(fault.hint("kinds are simple, regex and relaxed"));
                }
            };
        }
        if self.is_option("flags") {
            self.at += 2;
            let word = self.name("flags such as `i`")?;
            if let Some(unknown) = word.text.chars().find(|c| !"imsU".contains(*c)) {
                return Err(Fault::new(word.place, format!("`{unknown}` is no flag")).hint("flags are i, m, s and U"));
            }
            flags = word.text;
        }
        let value = self.expression()?;
        self.expect_name("with")?;
        let mut pattern = Vec::new();
        while let Some(part) = self.parse_part()? {
            pattern.push(part);
        }
        match pattern.iter().any(|part| matches!(part, ParsePart::Column(_, _))) {
            true => Ok(Parse { kind, flags, value, pattern, is_filter }),
            false => Err(self.expected("the name of a column")),
        }
    }

    fn parse_part(&mut self) -> Result<Option<ParsePart>, Fault> {
        if self.eat("*") {
            return Ok(Some(ParsePart::Any));
        }
        if let Kind::Text(text) = self.kind_at(0) {
            let text = text.clone();
            self.at += 1;
            return Ok(Some(ParsePart::Text(text)));
        }
        if !(self.is("[") || self.peek_name().is_some()) {
            return Ok(None);
        }
        let name = self.name("the name of a column")?;
        let kind = if self.eat(":") { self.type_name()? } else { Type::Text };
        Ok(Some(ParsePart::Column(name, kind)))
    }
}
