//! Functions as the values of `let`: `(a: long, b: string = "x", T: (*)) { … }`.

use std::rc::Rc;

use super::{Parser, Statement};
use crate::error::Fault;
use crate::lexer::Kind;
use crate::syntax::{Expression, Function, Parameter, ParameterKind, Query, Shape};

impl Parser {
    /// Whether a function begins here, perhaps after `view`.
    pub(super) fn is_function(&self) -> bool {
        let first = usize::from(self.is_name("view"));
        let symbol = |at: usize, symbol| self.kind_at(at) == &Kind::Symbol(symbol);
        let is_parameter = matches!(self.kind_at(first + 1), Kind::Name(_)) && symbol(first + 2, ":");
        symbol(first, "(") && (is_parameter || (symbol(first + 1, ")") && symbol(first + 2, "{")))
    }

    pub(super) fn function(&mut self) -> Result<Expression, Fault> {
        self.eat_name("view");
        let start = self.place();
        self.expect("(")?;
        let parameters = if self.is(")") { Vec::new() } else { self.list(Parser::parameter)? };
        self.expect(")")?;
        self.expect("{")?;
        let body = self.deeper(Parser::function_body)?;
        self.expect("}")?;
        self.made(start.to(self.before()), Shape::Function(Rc::new(Function { parameters, body })))
    }

    fn function_body(&mut self) -> Result<Query, Fault> {
        let mut lets = Vec::new();
        loop {
            while self.eat(";") {}
            match self.statement()? {
                Statement::Let(it) => lets.push(it),
                Statement::Body(body) => {
                    while self.eat(";") {}
                    return Ok(Query { lets, body });
                }
            }
        }
    }

    fn parameter(&mut self) -> Result<Parameter, Fault> {
        let name = self.name("the name of a parameter")?;
        self.expect(":")?;
        if self.eat("(") {
            let columns = if self.eat("*") { Vec::new() } else { self.list(Parser::typed_name)? };
            self.expect(")")?;
            return Ok(Parameter { name, kind: ParameterKind::Table(columns), default: None });
        }
        let kind = ParameterKind::Value(self.type_name()?);
        let default = if self.eat("=") { Some(self.sum()?) } else { None };
        Ok(Parameter { name, kind, default })
    }
}
