//! Reads a query by recursive descent. The depth of a query is bounded, so no query can exhaust the stack.

mod expression;
mod primary;
mod select;
#[cfg(test)]
mod tests;

use super::SyntaxError;
use super::ast::{Expression, Query};
use super::lexer::{Lexer, Token};

/// The longest query in bytes.
const MAX_QUERY_BYTES: usize = 256 * 1024;
/// The longest way down the tree of a query.
const MAX_HEIGHT: usize = 64;
/// How deep rules may be within each other; a printed query has a pair of parentheses for each expression.
const MAX_DEPTH: usize = 200;

/// Words that cannot be an alias without AS.
const RESERVED: [&str; 30] = [
    "SELECT",
    "FROM",
    "WHERE",
    "JOIN",
    "ORDER",
    "GROUP",
    "BY",
    "OFFSET",
    "LIMIT",
    "IN",
    "AS",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "TOP",
    "DISTINCT",
    "VALUE",
    "EXISTS",
    "ASC",
    "DESC",
    "UNDEFINED",
    "TRUE",
    "FALSE",
    "NULL",
    "HAVING",
    "UNION",
    "ON",
];

/// Reads `query`, or says where it leaves the language.
pub(super) fn parse(query: &str) -> Result<Query, SyntaxError> {
    if query.len() > MAX_QUERY_BYTES {
        let found = format!("{} bytes", query.len());
        return Err(SyntaxError { character: 1, found, expected: format!("at most {MAX_QUERY_BYTES} bytes") });
    }
    let mut parser = Parser { query, tokens: tokens(query), next: 0, depth: 0, aggregates: 0 };
    let (parsed, _) = parser.select()?;
    match parser.token() {
        Token::End => Ok(parsed),
        _ => Err(parser.error("the end of the query")),
    }
}

fn tokens(query: &str) -> Vec<(usize, Token)> {
    let mut lexer = Lexer::new(query);
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next();
        let is_end = token.1 == Token::End;
        tokens.push(token);
        if is_end {
            return tokens;
        }
    }
}

struct Parser<'a> {
    query: &'a str,
    /// Ends with [`Token::End`].
    tokens: Vec<(usize, Token)>,
    next: usize,
    /// Rules entered and not yet left.
    depth: usize,
    /// Aggregates of the query being read, so far.
    aggregates: usize,
}

/// An expression and the length of the longest way down its tree.
struct Tree {
    expression: Expression,
    height: usize,
}

impl Parser<'_> {
    /// A tree with `expression` at its top and others of `height` below.
    fn tree(&self, expression: Expression, height: usize) -> Result<Tree, SyntaxError> {
        if height >= MAX_HEIGHT {
            return Err(self.error(&format!("expressions nested at most {MAX_HEIGHT} deep")));
        }
        Ok(Tree { expression, height: height + 1 })
    }

    fn leaf(expression: Expression) -> Tree {
        Tree { expression, height: 1 }
    }

    /// Runs a rule that can contain itself.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T, SyntaxError>) -> Result<T, SyntaxError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(&format!("expressions nested at most {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    fn token(&self) -> &Token {
        self.peek(0)
    }

    fn peek(&self, ahead: usize) -> &Token {
        self.tokens.get(self.next + ahead).map_or(&Token::End, |(_, token)| token)
    }

    /// The byte the next token begins at.
    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.query.len(), |(at, _)| *at)
    }

    fn advance(&mut self) {
        self.next += 1;
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        self.is_keyword_ahead(0, keyword)
    }

    fn is_keyword_ahead(&self, ahead: usize, keyword: &str) -> bool {
        matches!(self.peek(ahead), Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    /// Passes over `keyword` if it is next.
    fn takes_keyword(&mut self, keyword: &str) -> bool {
        let is_next = self.is_keyword(keyword);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), SyntaxError> {
        if self.takes_keyword(keyword) { Ok(()) } else { Err(self.error(keyword)) }
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        self.is_symbol_ahead(0, symbol)
    }

    fn is_symbol_ahead(&self, ahead: usize, symbol: &str) -> bool {
        matches!(self.peek(ahead), Token::Symbol(found) if *found == symbol)
    }

    /// Passes over `symbol` if it is next.
    fn takes_symbol(&mut self, symbol: &str) -> bool {
        let is_next = self.is_symbol(symbol);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn symbol(&mut self, symbol: &str) -> Result<(), SyntaxError> {
        if self.takes_symbol(symbol) { Ok(()) } else { Err(self.error(symbol)) }
    }

    /// A name that is no keyword.
    fn name(&mut self, expected: &str) -> Result<String, SyntaxError> {
        match self.token() {
            Token::Word(word) if !is_reserved(word) => {
                let word = word.clone();
                self.advance();
                Ok(word)
            }
            _ => Err(self.error(expected)),
        }
    }

    fn error(&self, expected: &str) -> SyntaxError {
        SyntaxError::at(self.query, self.at(), expected)
    }
}

fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}
