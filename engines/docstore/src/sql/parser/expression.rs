//! Operators, from the weakest to the strongest: `?:`, `??`, OR, AND, NOT, comparisons with IN, BETWEEN and LIKE, and
//! the rest by the strengths of [`Binary::ALL`].

use super::{Parser, SyntaxError, Tree};
use crate::sql::ast::{Binary, Expression, Like, Unary};
use crate::sql::lexer::Token;

/// The strength of comparisons, the weakest of what [`Parser::binary`] reads.
const COMPARISON: u8 = 2;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Tree, SyntaxError> {
        self.nested(Self::ternary)
    }

    fn ternary(&mut self) -> Result<Tree, SyntaxError> {
        let condition = self.coalesce()?;
        if !self.takes_symbol("?") {
            return Ok(condition);
        }
        let yes = self.expression()?;
        self.symbol(":")?;
        let no = self.expression()?;
        let height = condition.height.max(yes.height).max(no.height);
        self.tree(Expression::Ternary(Box::new([condition.expression, yes.expression, no.expression])), height)
    }

    fn coalesce(&mut self) -> Result<Tree, SyntaxError> {
        let mut left = self.or()?;
        while self.takes_symbol("??") {
            let right = self.or()?;
            left = self.join(Binary::Coalesce, left, right)?;
        }
        Ok(left)
    }

    fn or(&mut self) -> Result<Tree, SyntaxError> {
        self.chain("OR", Self::and, Expression::Or)
    }

    fn and(&mut self) -> Result<Tree, SyntaxError> {
        self.chain("AND", Self::not, Expression::And)
    }

    /// Operands of one kind with `keyword` between them, as one flat list.
    fn chain(
        &mut self,
        keyword: &str,
        operand: fn(&mut Self) -> Result<Tree, SyntaxError>,
        make: fn(Vec<Expression>) -> Expression,
    ) -> Result<Tree, SyntaxError> {
        let first = operand(self)?;
        if !self.is_keyword(keyword) {
            return Ok(first);
        }
        let (mut operands, mut height) = (vec![first.expression], first.height);
        while self.takes_keyword(keyword) {
            let next = operand(self)?;
            height = next.height.max(height);
            operands.push(next.expression);
        }
        self.tree(make(operands), height)
    }

    fn not(&mut self) -> Result<Tree, SyntaxError> {
        if !self.takes_keyword("NOT") {
            return self.comparison();
        }
        let inner = self.nested(Self::not)?;
        self.negated(inner)
    }

    fn negated(&self, inner: Tree) -> Result<Tree, SyntaxError> {
        self.tree(Expression::Unary(Unary::Not, Box::new(inner.expression)), inner.height)
    }

    fn comparison(&mut self) -> Result<Tree, SyntaxError> {
        let left = self.binary(COMPARISON)?;
        let negated = self.is_keyword("NOT");
        let ahead = usize::from(negated);
        let is_predicate = ["IN", "BETWEEN", "LIKE"].iter().any(|word| self.is_keyword_ahead(ahead, word));
        if !is_predicate {
            return Ok(left);
        }
        self.next += ahead;
        let tree = self.predicate(left)?;
        if negated { self.negated(tree) } else { Ok(tree) }
    }

    fn predicate(&mut self, left: Tree) -> Result<Tree, SyntaxError> {
        let mut height = left.height;
        if self.takes_keyword("IN") {
            self.symbol("(")?;
            let list = self.list(&mut height)?;
            self.symbol(")")?;
            return self.tree(Expression::In(Box::new(left.expression), list), height);
        }
        if self.takes_keyword("BETWEEN") {
            let low = self.binary(COMPARISON + 1)?;
            self.keyword("AND")?;
            let high = self.binary(COMPARISON + 1)?;
            height = height.max(low.height).max(high.height);
            let parts = Box::new([left.expression, low.expression, high.expression]);
            return self.tree(Expression::Between(parts), height);
        }
        self.keyword("LIKE")?;
        let pattern = self.binary(COMPARISON + 1)?;
        let escape = if self.takes_keyword("ESCAPE") { Some(self.escape()?) } else { None };
        let like = Like { text: left.expression, pattern: pattern.expression, escape };
        self.tree(Expression::Like(Box::new(like)), height.max(pattern.height))
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let Token::Text(text) = self.token() else { return Err(self.error("one character in quotes")) };
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(escape), None) => {
                self.advance();
                Ok(escape)
            }
            _ => Err(self.error("one character in quotes")),
        }
    }

    /// Operators of at least `strength`; those of equal strength from left to right.
    fn binary(&mut self, strength: u8) -> Result<Tree, SyntaxError> {
        let mut left = self.unary()?;
        while let Some((operator, its_strength)) = self.operator().filter(|(_, found)| *found >= strength) {
            self.advance();
            let right = self.binary(its_strength + 1)?;
            left = self.join(operator, left, right)?;
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(Binary, u8)> {
        let Token::Symbol(symbol) = self.token() else { return None };
        let found = Binary::ALL.iter().find(|(known, ..)| known == symbol)?;
        (found.2 >= COMPARISON).then_some((found.1, found.2))
    }

    fn join(&self, operator: Binary, left: Tree, right: Tree) -> Result<Tree, SyntaxError> {
        let height = left.height.max(right.height);
        self.tree(Expression::Binary(operator, Box::new(left.expression), Box::new(right.expression)), height)
    }

    fn unary(&mut self) -> Result<Tree, SyntaxError> {
        let operators = [("-", Unary::Minus), ("+", Unary::Plus), ("~", Unary::BitNot)];
        let Some((_, operator)) = operators.into_iter().find(|(symbol, _)| self.is_symbol(symbol)) else {
            let primary = self.primary()?;
            return self.steps(primary);
        };
        self.advance();
        let inner = self.nested(Self::unary)?;
        self.tree(Expression::Unary(operator, Box::new(inner.expression)), inner.height)
    }
}
