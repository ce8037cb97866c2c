//! Reads a query: statements here, tables and their operators, and expressions, in the files below.
//!
//! Recursive descent over a list of tokens. Every way down goes through one counter, so that no nesting, however deep,
//! reaches the end of the stack. Words outside the part of KQL that is known are refused by their name here, where they
//! stand.

mod expression;
mod function;
mod join;
mod make_series;
mod mv_expand;
mod operator;
mod parse;
mod render;
mod source;
mod top_nested;
mod unsupported;

use crate::error::{Fault, TextRange};
use crate::lexer::{Kind, Token, tokens};
use crate::syntax::{Expression, Let, Name, Query, Shape};

pub(crate) use unsupported::is_known_function;

/// How deep parentheses, calls and signs may nest, in steps of the parser: a pair of parentheses is two.
const DEPTH_MAX: usize = 100;
/// How deep an expression may be, to which every link of a chain such as `a + b + …` adds one.
const HEIGHT_MAX: usize = 100;
/// How many terms a chain such as `a and b and …` may have: SQLite takes 1000.
const TERMS_MAX: usize = 400;
/// How many operators a pipeline may have.
const OPERATORS_MAX: usize = 200;

/// Reads a whole query.
pub(crate) fn query(text: &str) -> Result<Query, Fault> {
    let mut parser = Parser::new(text, 0)?;
    let mut lets = Vec::new();
    loop {
        while parser.eat(";") {}
        if parser.is_end() {
            return Err(Fault::new(parser.place(), "the query ends where a table was expected")
                .hint("name a table, such as `requests`"));
        }
        match parser.statement()? {
            Statement::Let(it) => lets.push(it),
            Statement::Body(body) => {
                while parser.eat(";") {}
                if !parser.is_end() {
                    let message = format!("{} stands behind the end of the query", parser.found());
                    return Err(
                        Fault::new(parser.place(), message).hint("a query has one table; `let` comes before it")
                    );
                }
                return Ok(Query { lets, body });
            }
        }
    }
}

/// Reads one value, as it stands behind `let name =`.
/// Its places begin at `offset`.
pub(crate) fn value(text: &str, offset: usize) -> Result<Expression, Fault> {
    let mut parser = Parser::new(text, offset)?;
    let value = parser.pipe_expression()?;
    match parser.is_end() {
        true => Ok(value),
        false => Err(Fault::new(parser.place(), format!("{} stands behind the end of the value", parser.found()))
            .hint("a string stands in quotation marks")),
    }
}

enum Statement {
    Let(Let),
    Body(Expression),
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn new(text: &str, offset: usize) -> Result<Parser, Fault> {
        let moved = |place: TextRange| TextRange { start: place.start + offset, end: place.end + offset };
        let mut tokens = tokens(text).map_err(|fault| Fault { place: moved(fault.place), ..fault })?;
        tokens.iter_mut().for_each(|token| token.place = moved(token.place));
        Ok(Parser { tokens, at: 0, depth: 0 })
    }

    fn statement(&mut self) -> Result<Statement, Fault> {
        if let Some(word) =
            self.peek_name().filter(|word| ["set", "declare", "alias", "restrict", "pattern"].contains(word))
            && matches!(self.kind_at(1), Kind::Name(_))
        {
            return Err(unsupported::statement(word, self.place()));
        }
        if !(self.is_name("let") && (matches!(self.kind_at(1), Kind::Name(_)) || self.kind_at(1) == &Kind::Symbol("[")))
        {
            return Ok(Statement::Body(self.pipe_expression()?));
        }
        self.at += 1;
        let name = self.name("the name of what is let")?;
        self.expect("=")?;
        let value = if self.is_function() { self.function()? } else { self.pipe_expression()? };
        if !(self.is_end() || self.is("}")) {
            self.expect(";")?;
        }
        Ok(Statement::Let(Let { name, value }))
    }

    /// A value, or a table when a bar follows.
    fn pipe_expression(&mut self) -> Result<Expression, Fault> {
        self.deeper(|parser| {
            let start = parser.place();
            let first = match parser.tabular_source()? {
                Some(pipeline) => parser.made(start.to(parser.before()), Shape::Pipeline(pipeline))?,
                None => parser.expression()?,
            };
            match parser.is("|") {
                true => parser.operators(first),
                false => Ok(first),
            }
        })
    }

    /// An expression, if it is not too deep for those who go through it.
    fn made(&self, place: TextRange, kind: Shape) -> Result<Expression, Fault> {
        let height = kind.height();
        match height <= HEIGHT_MAX {
            true => Ok(Expression { kind, place, height }),
            false => Err(Fault::new(place, format!("this is nested more than {HEIGHT_MAX} levels deep"))
                .hint("name a part of it with `let` or `extend`")),
        }
    }

    /// Goes one level down, if that is allowed.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Parser) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth == DEPTH_MAX {
            return Err(Fault::new(self.place(), format!("this is nested more than {DEPTH_MAX} levels deep"))
                .hint("name the inner parts with `let`"));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    // Looking -----------------------------------------------------------------------------------------------------------

    fn kind_at(&self, ahead: usize) -> &Kind {
        self.tokens.get(self.at + ahead).map_or(&Kind::End, |token| &token.kind)
    }

    fn place(&self) -> TextRange {
        self.place_at(0)
    }

    fn place_at(&self, ahead: usize) -> TextRange {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens.get((self.at + ahead).min(last)).map_or(TextRange { start: 0, end: 0 }, |token| token.place)
    }

    /// The place of the token just read.
    fn before(&self) -> TextRange {
        self.tokens.get(self.at.saturating_sub(1)).map_or(TextRange { start: 0, end: 0 }, |token| token.place)
    }

    fn is_end(&self) -> bool {
        self.kind_at(0) == &Kind::End
    }

    fn is(&self, symbol: &'static str) -> bool {
        self.kind_at(0) == &Kind::Symbol(symbol)
    }

    fn peek_name(&self) -> Option<&str> {
        match self.kind_at(0) {
            Kind::Name(name) => Some(name),
            _ => None,
        }
    }

    fn is_name(&self, word: &str) -> bool {
        self.peek_name() == Some(word)
    }

    /// Token at this place, for a message.
    fn found(&self) -> String {
        match self.kind_at(0) {
            Kind::End => "the end of the query".to_owned(),
            Kind::Name(name) => format!("`{name}`"),
            Kind::Symbol(symbol) => format!("`{symbol}`"),
            Kind::Text(_) => "a string".to_owned(),
            Kind::Long(_) | Kind::Real(_) => "a number".to_owned(),
            Kind::Span(_) | Kind::Raw(_, _) => "a literal".to_owned(),
        }
    }

    fn expected(&self, what: &str) -> Fault {
        Fault::new(self.place(), format!("{} stands where {what} was expected", self.found()))
    }

    // Taking ------------------------------------------------------------------------------------------------------------

    fn eat(&mut self, symbol: &'static str) -> bool {
        let is_it = self.is(symbol);
        self.at += usize::from(is_it);
        is_it
    }

    fn eat_name(&mut self, word: &str) -> bool {
        let is_it = self.is_name(word);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), Fault> {
        match self.eat(symbol) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{symbol}`"))),
        }
    }

    fn expect_name(&mut self, word: &str) -> Result<(), Fault> {
        match self.eat_name(word) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{word}`"))),
        }
    }

    /// A name, also as `['any text']`.
    fn name(&mut self, what: &str) -> Result<Name, Fault> {
        let place = self.place();
        if let Kind::Name(text) = self.kind_at(0) {
            let text = text.clone();
            self.at += 1;
            return Ok(Name { text, place });
        }
        if let (true, Kind::Text(text), Kind::Symbol("]")) = (self.is("["), self.kind_at(1), self.kind_at(2)) {
            let text = text.clone();
            self.at += 3;
            return Ok(Name { text, place: place.to(self.before()) });
        }
        Err(self.expected(what))
    }

    /// The arguments of a call, in parentheses.
    fn arguments(&mut self) -> Result<Vec<Expression>, Fault> {
        self.expect("(")?;
        let arguments = if self.is(")") { Vec::new() } else { self.list(Parser::pipe_expression)? };
        self.expect(")")?;
        Ok(arguments)
    }

    /// One or more, with commas between.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Parser) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
        let mut items = vec![read(self)?];
        while self.eat(",") {
            items.push(read(self)?);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lets_and_one_body() {
        let query = query("let a = 1;; let ['b c'] = requests | take 5;\n// said\nb | count;").unwrap();
        assert_eq!(query.lets.iter().map(|it| it.name.text.as_str()).collect::<Vec<_>>(), ["a", "b c"]);
        assert!(matches!(query.lets[1].value.kind, Shape::Pipeline(_)));
        assert!(matches!(query.body.kind, Shape::Pipeline(_)));
    }

    #[test]
    fn nesting_has_a_limit_and_no_stack_to_overflow() {
        for (open, close) in [("(", ")"), ("not(", ")"), ("-", ""), ("x[", "]"), ("(requests | join ", ")")] {
            let text = format!("print {}1{}", open.repeat(20_000), close.repeat(20_000));
            let fault = query(&text).unwrap_err();
            assert!(fault.message.contains("nested more than"), "{open}: {}", fault.message);
        }
        for step in [" + 1", " and 1", ".a", "[0]"] {
            let fault = query(&format!("print x{}", step.repeat(20_000))).unwrap_err();
            assert!(fault.message.contains("more than"), "{step}: {}", fault.message);
        }
    }

    #[test]
    fn what_is_not_in_our_part_is_refused_by_name() {
        for (text, message) in [
            ("set notruncation; requests", "the statement `set` is not in the part of KQL that is known here"),
            ("requests | mv-apply x", "the operator `mv-apply` is not in the part of KQL that is known here"),
            ("requests | sumarize count()", "`sumarize` is no operator"),
            ("search 'x'", "the operator `search` is not in the part of KQL that is known here"),
        ] {
            assert_eq!(query(text).unwrap_err().message, message, "{text}");
        }
    }
}
