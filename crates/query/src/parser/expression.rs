//! Expressions, from the loosest binding to the tightest: `or`, `and`, comparisons, sums, products, signs, members.

use super::{Parser, TERMS_MAX, unsupported};
use crate::error::{Fault, TextRange};
use crate::lexer::{Kind, Raw};
use crate::literal;
use crate::syntax::{Binary, Expression, Literal, Logic, Match, Members, Name, Shape};
use crate::types::Type;

/// The operators that compare with a string, and whether `!` may stand before.
const MATCHES: [(&str, Match); 13] = [
    ("contains", Match::Contains),
    ("contains_cs", Match::ContainsCase),
    ("has", Match::Has),
    ("has_cs", Match::HasCase),
    ("hasprefix", Match::HasPrefix),
    ("hasprefix_cs", Match::HasPrefixCase),
    ("hassuffix", Match::HasSuffix),
    ("hassuffix_cs", Match::HasSuffixCase),
    ("startswith", Match::StartsWith),
    ("startswith_cs", Match::StartsWithCase),
    ("endswith", Match::EndsWith),
    ("endswith_cs", Match::EndsWithCase),
    ("matches", Match::Regex),
];

const COMPARISONS: [(&str, Binary); 7] = [
    ("==", Binary::Equal),
    ("!=", Binary::NotEqual),
    ("<>", Binary::NotEqual),
    ("<", Binary::Less),
    ("<=", Binary::LessOrEqual),
    (">", Binary::Greater),
    (">=", Binary::GreaterOrEqual),
];

/// How two sides are compared; the flag says whether a `!` stands before.
#[derive(Clone, Copy)]
enum Comparison {
    Sign(Binary),
    Word(Match, bool),
    List(Members, bool),
    Between(bool),
}

/// The operator that a word is, if it is one.
fn worded(word: &str, is_negated: bool, place: TextRange) -> Result<Option<Comparison>, Fault> {
    if let Some((_, operator)) = MATCHES.iter().find(|(name, _)| *name == word) {
        if *operator == Match::Regex && is_negated {
            let fault = Fault::new(place, "`!matches` is no operator");
            return Err(fault.hint("write `not(x matches regex \"…\")`"));
        }
        return Ok(Some(Comparison::Word(*operator, is_negated)));
    }
    match word {
        "in" => Ok(Some(Comparison::List(Members::In, is_negated))),
        "has_any" if !is_negated => Ok(Some(Comparison::List(Members::HasAny, false))),
        "has_all" if !is_negated => Ok(Some(Comparison::List(Members::HasAll, false))),
        "between" => Ok(Some(Comparison::Between(is_negated))),
        other if unsupported::is_string_operator(other) => {
            let mark = if is_negated { "!" } else { "" };
            Err(unsupported::word("the operator", &format!("{mark}{other}"), place))
        }
        _ if is_negated => {
            let known = MATCHES.iter().map(|(name, _)| *name).chain(["in", "between"]);
            Err(Fault::new(place, format!("`!{word}` is no operator")).near(word, known))
        }
        _ => Ok(None),
    }
}

impl Parser {
    pub(super) fn expression(&mut self) -> Result<Expression, Fault> {
        self.deeper(|parser| parser.logic(Logic::Or))
    }

    fn logic(&mut self, logic: Logic) -> Result<Expression, Fault> {
        let (word, start) = (if logic == Logic::Or { "or" } else { "and" }, self.place());
        let mut terms = vec![self.term(logic)?];
        while self.eat_name(word) {
            self.check_terms(terms.len())?;
            terms.push(self.term(logic)?);
        }
        match terms.pop() {
            Some(only) if terms.is_empty() => Ok(only),
            last => {
                terms.extend(last);
                self.made(start.to(self.before()), Shape::All(logic, terms))
            }
        }
    }

    fn term(&mut self, logic: Logic) -> Result<Expression, Fault> {
        match logic {
            Logic::Or => self.logic(Logic::And),
            Logic::And => self.comparison(),
        }
    }

    fn check_terms(&self, count: usize) -> Result<(), Fault> {
        match count < TERMS_MAX {
            true => Ok(()),
            false => Err(Fault::new(self.place(), format!("this chain has more than {TERMS_MAX} terms"))),
        }
    }

    fn comparison(&mut self) -> Result<Expression, Fault> {
        let left = self.sum()?;
        let Some(operator) = self.compared_by()? else { return Ok(left) };
        let compared = self.compared(left, operator)?;
        let place = self.place();
        match self.compared_by()? {
            None => Ok(compared),
            Some(_) => Err(Fault::new(place, "a comparison cannot be compared again without parentheses")),
        }
    }

    /// The operator of a comparison, if one stands here; then it is behind us.
    fn compared_by(&mut self) -> Result<Option<Comparison>, Fault> {
        if let Some((_, binary)) = COMPARISONS.iter().find(|(symbol, _)| self.is(symbol)) {
            self.at += 1;
            return Ok(Some(Comparison::Sign(*binary)));
        }
        if self.is("=~") || self.is("!~") {
            let is_negated = self.is("!~");
            self.at += 1;
            return Ok(Some(Comparison::Word(Match::EqualAnyCase, is_negated)));
        }
        let is_negated = self.is("!");
        let ahead = usize::from(is_negated);
        let Kind::Name(word) = self.kind_at(ahead).clone() else { return Ok(None) };
        let Some(operator) = worded(&word, is_negated, self.place_at(ahead))? else { return Ok(None) };
        self.at += ahead + 1;
        match operator {
            Comparison::Word(Match::Regex, _) => self.expect_name("regex")?,
            Comparison::List(Members::In, _) if self.eat("~") => {
                return Ok(Some(Comparison::List(Members::InAnyCase, is_negated)));
            }
            _ => {}
        }
        Ok(Some(operator))
    }

    fn compared(&mut self, left: Expression, operator: Comparison) -> Result<Expression, Fault> {
        let start = left.place;
        let left = Box::new(left);
        let kind = match operator {
            Comparison::Sign(binary) => Shape::Binary(binary, left, Box::new(self.sum()?)),
            Comparison::Word(word, is_negated) => Shape::Matches(word, left, Box::new(self.sum()?), is_negated),
            Comparison::List(members, is_negated) => {
                self.expect("(")?;
                let list = self.list(Parser::pipe_expression)?;
                self.expect(")")?;
                Shape::OneOf(members, left, list, is_negated)
            }
            Comparison::Between(is_negated) => {
                self.expect("(")?;
                let low = self.expression()?;
                self.expect("..")?;
                let high = self.expression()?;
                self.expect(")")?;
                Shape::Between(left, Box::new(low), Box::new(high), is_negated)
            }
        };
        self.made(start.to(self.before()), kind)
    }

    pub(super) fn sum(&mut self) -> Result<Expression, Fault> {
        self.chain(&[("+", Binary::Add), ("-", Binary::Subtract)], Parser::product)
    }

    fn product(&mut self) -> Result<Expression, Fault> {
        self.chain(&[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Modulo)], Parser::signed)
    }

    fn chain(
        &mut self,
        operators: &[(&'static str, Binary)],
        read: impl Fn(&mut Parser) -> Result<Expression, Fault>,
    ) -> Result<Expression, Fault> {
        let mut left = read(self)?;
        while let Some((_, binary)) = operators.iter().find(|(symbol, _)| self.is(symbol)) {
            self.at += 1;
            let right = read(self)?;
            let place = left.place.to(right.place);
            left = self.made(place, Shape::Binary(*binary, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Expression, Fault> {
        let start = self.place();
        if self.eat("-") {
            let value = self.deeper(Parser::signed)?;
            return self.made(start.to(value.place), Shape::Negative(Box::new(value)));
        }
        if self.eat("+") {
            return self.deeper(Parser::signed);
        }
        self.member()
    }

    fn member(&mut self) -> Result<Expression, Fault> {
        let mut value = self.primary()?;
        while self.is(".") || self.is("[") {
            // `value.["key"]` is `value["key"]`.
            if self.eat(".") && !self.is("[") {
                let key = self.name("a key")?;
                let place = value.place.to(key.place);
                value = self.made(place, Shape::Member(Box::new(value), key))?;
            } else {
                self.expect("[")?;
                let index = self.expression()?;
                self.expect("]")?;
                let place = value.place.to(self.before());
                value = self.made(place, Shape::Index(Box::new(value), Box::new(index)))?;
            }
        }
        Ok(value)
    }

    fn primary(&mut self) -> Result<Expression, Fault> {
        let place = self.place();
        let kind = match self.kind_at(0).clone() {
            Kind::Text(text) => self.strings(text),
            Kind::Long(value) => self.taken(Shape::Literal(Literal::Long(value))),
            Kind::Real(value) => self.taken(Shape::Literal(Literal::Real(value))),
            Kind::Span(value) => self.taken(Shape::Literal(Literal::Timespan(value))),
            Kind::Raw(raw, text) => Shape::Literal(self.raw(raw, &text)?),
            Kind::Symbol("*") => self.taken(Shape::Star),
            Kind::Symbol("(") => return self.parenthesised(),
            Kind::Symbol("[") => Shape::Name(self.name("an expression")?.text),
            Kind::Name(name) => return self.named(Name { text: name, place }),
            _ => return Err(self.expected("an expression")),
        };
        self.made(place.to(self.before()), kind)
    }

    /// A string, joined with the strings directly after it.
    fn strings(&mut self, mut text: String) -> Shape {
        self.at += 1;
        while let Kind::Text(more) = self.kind_at(0) {
            text.push_str(more);
            self.at += 1;
        }
        Shape::Literal(Literal::Text(text))
    }

    fn taken(&mut self, shape: Shape) -> Shape {
        self.at += 1;
        shape
    }

    fn parenthesised(&mut self) -> Result<Expression, Fault> {
        self.expect("(")?;
        let inner = self.pipe_expression()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn raw(&mut self, raw: Raw, text: &str) -> Result<Literal, Fault> {
        let place = self.place();
        self.at += 1;
        let (kind, read, form) = match raw {
            Raw::Dynamic => return dynamic(text, place),
            Raw::Guid => return Err(unsupported::word("the type", "guid", place)),
            Raw::Datetime => {
                (Type::Datetime, literal::datetime(text).map(Literal::Datetime), "datetime(2020-06-18T20:59:00Z)")
            }
            Raw::Timespan => (Type::Timespan, literal::timespan(text).map(Literal::Timespan), "timespan(1.02:03:04)"),
        };
        match read {
            _ if text == "null" => Ok(Literal::Null(kind)),
            Some(literal) => Ok(literal),
            None => Err(Fault::new(place, format!("`{text}` is no {} within the years 1678 to 2261", kind.word()))
                .hint(format!("write it as `{form}`; what is not a literal goes through `to{}`", kind.word()))),
        }
    }

    /// A name: a column, a literal such as `true`, or a call.
    fn named(&mut self, name: Name) -> Result<Expression, Fault> {
        self.at += 1;
        let literal = match name.text.as_str() {
            "true" | "True" | "TRUE" => Some(Literal::Bool(true)),
            "false" | "False" | "FALSE" => Some(Literal::Bool(false)),
            _ => None,
        };
        if let Some(literal) = literal {
            return self.made(name.place, Shape::Literal(literal));
        }
        if !self.is("(") {
            return self.made(name.place, Shape::Name(name.text));
        }
        if let Some(kind) = Type::named(&name.text) {
            return self.typed(kind, &name);
        }
        if name.text == "decimal" {
            return Err(unsupported::word("the type", &name.text, name.place));
        }
        let arguments = self.arguments()?;
        self.made(name.place.to(self.before()), Shape::Call(name, arguments))
    }

    /// `long(5)`, `real(null)` and their like.
    fn typed(&mut self, kind: Type, name: &Name) -> Result<Expression, Fault> {
        self.expect("(")?;
        let is_negative = self.eat("-");
        let literal = match (kind, self.kind_at(0).clone()) {
            (_, Kind::Name(word)) if word == "null" && !is_negative => Literal::Null(kind),
            (Type::Bool, Kind::Name(word)) if word == "true" || word == "false" => Literal::Bool(word == "true"),
            (Type::Bool, Kind::Long(value)) if !is_negative => Literal::Bool(value != 0),
            (Type::Long, Kind::Long(value)) => Literal::Long(if is_negative { -value } else { value }),
            (Type::Real, Kind::Long(value)) => Literal::Real(if is_negative { -(value as f64) } else { value as f64 }),
            (Type::Real, Kind::Real(value)) => Literal::Real(if is_negative { -value } else { value }),
            _ => {
                return Err(Fault::new(self.place(), format!("`{}(…)` takes a literal or `null`", name.text))
                    .hint(format!("a value is converted by `to{}`", kind.word())));
            }
        };
        self.at += 1;
        self.expect(")")?;
        self.made(name.place.to(self.before()), Shape::Literal(literal))
    }
}

fn dynamic(text: &str, place: TextRange) -> Result<Literal, Fault> {
    match serde_json::from_str(&doubly_quoted(text)) {
        Ok(serde_json::Value::Null) => Ok(Literal::Null(Type::Dynamic)),
        Ok(value) if value.to_string().contains("\\u0000") => {
            Err(Fault::new(place, "a string cannot hold the character NUL"))
        }
        Ok(value) => Ok(Literal::Dynamic(value)),
        Err(_) => Err(Fault::new(place, "what stands in `dynamic(…)` is no JSON")
            .hint("names and strings in it stand in quotation marks")),
    }
}

/// JSON whose strings may stand in single quotation marks, as JSON has them.
fn doubly_quoted(text: &str) -> String {
    let mut json = String::new();
    let mut quote = None;
    let mut is_escaped = false;
    for c in text.chars() {
        match (quote, c) {
            _ if is_escaped => {
                is_escaped = false;
                // JSON knows no escaped single mark.
                if c == '\'' {
                    json.pop();
                }
                json.push(c);
            }
            (Some(_), '\\') => {
                is_escaped = true;
                json.push(c);
            }
            (Some('\''), '"') => json.push_str("\\\""),
            (Some(open), c) if c == open => {
                quote = None;
                json.push('"');
            }
            (None, '"' | '\'') => {
                quote = Some(c);
                json.push('"');
            }
            _ => json.push(c),
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_may_have_single_quotation_marks() {
        for (text, wanted) in [
            (r#"['a', "b"]"#, r#"["a","b"]"#),
            (r#"{'it': 'say "x"'}"#, r#"{"it":"say \"x\""}"#),
            (r"['it\'s', 'a\\']", r#"["it's","a\\"]"#),
            (r#"["it's"]"#, r#"["it's"]"#),
        ] {
            let value: serde_json::Value = serde_json::from_str(&doubly_quoted(text)).unwrap();
            assert_eq!(value.to_string(), wanted, "{text}");
        }
    }
}
