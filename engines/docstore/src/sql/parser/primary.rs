//! Operands: values, paths, calls, arrays, objects and subqueries.

use super::{Parser, SyntaxError, Tree};
use crate::sql::ast::{Aggregate, AggregateCall, Expression};
use crate::sql::functions::Function;
use crate::sql::lexer::Token;
use crate::sql::value::Value;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Result<Tree, SyntaxError> {
        let literal = match self.token() {
            Token::Number(number) => Value::Number(*number),
            Token::Text(text) => Value::text(text),
            Token::Parameter(name) => {
                let parameter = Expression::Parameter(name.clone());
                self.advance();
                return Ok(Self::leaf(parameter));
            }
            Token::Symbol("(") => return self.in_parentheses(),
            Token::Symbol("[") => return self.array(),
            Token::Symbol("{") => return self.object(),
            Token::Word(word) => match word.to_ascii_lowercase().as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                "null" => Value::Null,
                "undefined" => Value::Undefined,
                _ => return self.word(),
            },
            _ => return Err(self.error("an expression")),
        };
        self.advance();
        Ok(Self::leaf(Expression::Literal(literal)))
    }

    /// `.name`, `["name"]` and `[expression]` after an expression.
    pub(super) fn steps(&mut self, mut tree: Tree) -> Result<Tree, SyntaxError> {
        loop {
            if self.takes_symbol(".") {
                let Token::Word(name) = self.token() else { return Err(self.error("a property's name")) };
                let member = Expression::Member(Box::new(tree.expression), name.clone());
                self.advance();
                tree = self.tree(member, tree.height)?;
            } else if self.takes_symbol("[") {
                let index = self.expression()?;
                self.symbol("]")?;
                let height = tree.height.max(index.height);
                let step = match index.expression {
                    Expression::Literal(Value::Text(name)) => Expression::Member(Box::new(tree.expression), name),
                    index => Expression::Index(Box::new(tree.expression), Box::new(index)),
                };
                tree = self.tree(step, height)?;
            } else {
                return Ok(tree);
            }
        }
    }

    fn in_parentheses(&mut self) -> Result<Tree, SyntaxError> {
        if self.is_keyword_ahead(1, "SELECT") {
            let mut height = 0;
            let query = self.subquery(&mut height)?;
            return self.tree(Expression::Subquery(Box::new(query)), height);
        }
        self.symbol("(")?;
        let tree = self.expression()?;
        self.symbol(")")?;
        Ok(tree)
    }

    fn array(&mut self) -> Result<Tree, SyntaxError> {
        self.symbol("[")?;
        let (mut elements, mut height) = (Vec::new(), 0);
        if !self.is_symbol("]") {
            elements = self.list(&mut height)?;
        }
        self.symbol("]")?;
        self.tree(Expression::Array(elements), height)
    }

    fn object(&mut self) -> Result<Tree, SyntaxError> {
        self.symbol("{")?;
        let (mut properties, mut height) = (Vec::new(), 0);
        while !self.is_symbol("}") {
            let (Token::Text(name) | Token::Word(name)) = self.token() else {
                return Err(self.error("a property's name or }"));
            };
            let name = name.clone();
            self.advance();
            self.symbol(":")?;
            let value = self.expression()?;
            height = value.height.max(height);
            properties.push((name, value.expression));
            if !self.takes_symbol(",") {
                break;
            }
        }
        self.symbol("}")?;
        self.tree(Expression::Object(properties), height)
    }

    fn word(&mut self) -> Result<Tree, SyntaxError> {
        let opens_subquery = self.is_symbol_ahead(1, "(") && self.is_keyword_ahead(2, "SELECT");
        let make = match self.token() {
            Token::Word(word) if opens_subquery && word.eq_ignore_ascii_case("EXISTS") => Expression::Exists,
            Token::Word(word) if opens_subquery && word.eq_ignore_ascii_case("ARRAY") => Expression::ArrayOf,
            _ if self.is_symbol_ahead(1, "(") => return self.call(),
            _ => {
                let at = self.at();
                let name = self.name("an expression")?;
                if name.eq_ignore_ascii_case("udf") && self.is_symbol(".") {
                    let expected = "no user-defined function: this store has none";
                    return Err(SyntaxError::at(self.query, at, expected));
                }
                return Ok(Self::leaf(Expression::Name(name, at)));
            }
        };
        self.advance();
        let mut height = 0;
        let query = self.subquery(&mut height)?;
        self.tree(make(Box::new(query)), height)
    }

    fn call(&mut self) -> Result<Tree, SyntaxError> {
        let at = self.at();
        let Token::Word(name) = self.token().clone() else { return Err(self.error("a function")) };
        let (aggregate, function) = (Aggregate::named(&name), Function::named(&name));
        if aggregate.is_none() && function.is_none() {
            return Err(self.error("a function this store has"));
        }
        self.advance();
        self.symbol("(")?;
        let (mut arguments, mut height) = (Vec::new(), 0);
        if !self.is_symbol(")") {
            arguments = self.list(&mut height)?;
        }
        self.symbol(")")?;
        let count = arguments.len();
        if let (Some(aggregate), 1) = (aggregate, count) {
            let slot = self.aggregates;
            self.aggregates += 1;
            let call = AggregateCall { function: aggregate, argument: arguments.swap_remove(0), slot, at };
            return self.tree(Expression::Aggregate(Box::new(call)), height);
        }
        let accepts = function.map_or(1..=1, Function::arguments);
        match function {
            Some(function) if accepts.contains(&count) => self.tree(Expression::Call(function, arguments), height),
            _ => {
                let (least, most) = (accepts.start(), accepts.end());
                let expected = if least == most {
                    format!("{name} with {least} arguments, not {count}")
                } else {
                    format!("{name} with {least} to {most} arguments, not {count}")
                };
                Err(SyntaxError::at(self.query, at, expected))
            }
        }
    }
}
