//! The clauses of a query, in their order.

use std::collections::HashSet;

use super::{Parser, SyntaxError, Tree, is_reserved};
use crate::sql::ast::{Bound, Expression, Item, OrderKey, Projection, Query, Rows, Source};
use crate::sql::lexer::Token;

/// Each JOIN multiplies rows; the real service has about the same limit.
const MAX_JOINS: usize = 10;
const MAX_ORDER_KEYS: usize = 16;

impl Parser<'_> {
    /// A whole query and its height.
    pub(super) fn select(&mut self) -> Result<(Query, usize), SyntaxError> {
        let aggregates_outside = std::mem::take(&mut self.aggregates);
        let result = self.nested(Self::clauses);
        self.aggregates = aggregates_outside;
        result
    }

    fn clauses(&mut self) -> Result<(Query, usize), SyntaxError> {
        let mut height = 0;
        self.keyword("SELECT")?;
        let distinct = self.takes_keyword("DISTINCT");
        let top = if self.takes_keyword("TOP") { Some(self.bound()?) } else { None };
        let projection = self.projection(&mut height)?;
        let sources = if self.takes_keyword("FROM") { self.sources(&mut height)? } else { Vec::new() };
        let filter = if self.takes_keyword("WHERE") { Some(self.below(&mut height)?) } else { None };
        let mut group_by = Vec::new();
        if self.takes_keyword("GROUP") {
            self.keyword("BY")?;
            group_by = self.list(&mut height)?;
        }
        let order_by = if self.takes_keyword("ORDER") { self.order_by(&mut height)? } else { Vec::new() };
        let mut offset_limit = None;
        if self.takes_keyword("OFFSET") {
            let offset = self.bound()?;
            self.keyword("LIMIT")?;
            offset_limit = Some((offset, self.bound()?));
        }
        let has_aggregate = || projection.expressions().into_iter().any(Expression::has_aggregate);
        let is_grouped = !group_by.is_empty() || has_aggregate();
        let query = Query { distinct, top, projection, sources, filter, group_by, order_by, offset_limit, is_grouped };
        Ok((query, height))
    }

    fn projection(&mut self, height: &mut usize) -> Result<Projection, SyntaxError> {
        if self.takes_symbol("*") {
            return Ok(Projection::Star);
        }
        if self.takes_keyword("VALUE") {
            return Ok(Projection::Value(self.below(height)?));
        }
        let (mut items, mut names, mut unnamed) = (Vec::new(), HashSet::new(), 0);
        loop {
            let at = self.at();
            let expression = self.below(height)?;
            let name = self.item_name(&expression, &mut unnamed)?;
            if !names.insert(name.clone()) {
                return Err(SyntaxError::at(self.query, at, format!("no second column with the name {name:?}")));
            }
            items.push(Item { expression, name });
            if !self.takes_symbol(",") {
                return Ok(Projection::Items(items));
            }
        }
    }

    /// The name after AS, else the last step of a path, else `$1`, `$2`, ….
    fn item_name(&mut self, expression: &Expression, unnamed: &mut usize) -> Result<String, SyntaxError> {
        if let Some(alias) = self.alias()? {
            return Ok(alias);
        }
        Ok(match expression {
            Expression::Name(name, _) | Expression::Member(_, name) => name.clone(),
            _ => {
                *unnamed += 1;
                format!("${unnamed}")
            }
        })
    }

    /// `AS name`, `name` or nothing.
    fn alias(&mut self) -> Result<Option<String>, SyntaxError> {
        if self.takes_keyword("AS") {
            return match self.token() {
                Token::Word(word) | Token::Text(word) => {
                    let word = word.clone();
                    self.advance();
                    Ok(Some(word))
                }
                _ => Err(self.error("a name after AS")),
            };
        }
        match self.token() {
            Token::Word(word) if !is_reserved(word) => self.name("a name").map(Some),
            _ => Ok(None),
        }
    }

    fn sources(&mut self, height: &mut usize) -> Result<Vec<Source>, SyntaxError> {
        let mut sources = vec![self.source(height)?];
        while self.is_keyword("JOIN") {
            if sources.len() > MAX_JOINS {
                return Err(self.error(&format!("at most {MAX_JOINS} times JOIN")));
            }
            self.advance();
            sources.push(self.source(height)?);
        }
        Ok(sources)
    }

    fn source(&mut self, height: &mut usize) -> Result<Source, SyntaxError> {
        if self.is_keyword_ahead(1, "IN") {
            let alias = self.name("a name before IN")?;
            self.keyword("IN")?;
            let rows = if self.is_symbol("(") {
                Rows::EachOf(Box::new(self.subquery(height)?))
            } else {
                Rows::Each(self.path(height)?)
            };
            return Ok(Source { alias, rows });
        }
        if self.is_symbol("(") {
            let query = self.subquery(height)?;
            let alias = self.alias()?.ok_or_else(|| self.error("AS and a name for the subquery"))?;
            return Ok(Source { alias, rows: Rows::Subquery(Box::new(query)) });
        }
        let path = self.path(height)?;
        let alias = match (self.alias()?, &path) {
            (Some(alias), _) => alias,
            (None, Expression::Name(name, _) | Expression::Member(_, name)) => name.clone(),
            (None, _) => return Err(self.error("AS and a name for the path")),
        };
        Ok(Source { alias, rows: Rows::Below(path) })
    }

    /// `(SELECT …)`
    pub(super) fn subquery(&mut self, height: &mut usize) -> Result<Query, SyntaxError> {
        self.symbol("(")?;
        let (query, below) = self.select()?;
        *height = below.max(*height);
        self.symbol(")")?;
        Ok(query)
    }

    fn path(&mut self, height: &mut usize) -> Result<Expression, SyntaxError> {
        let at = self.at();
        let name = self.name("the name of the container or a path")?;
        let tree = self.steps(Self::leaf(Expression::Name(name, at)))?;
        *height = tree.height.max(*height);
        Ok(tree.expression)
    }

    fn order_by(&mut self, height: &mut usize) -> Result<Vec<OrderKey>, SyntaxError> {
        self.keyword("BY")?;
        let mut keys = Vec::new();
        loop {
            let expression = self.below(height)?;
            let descending = self.takes_keyword("DESC");
            if !descending {
                self.takes_keyword("ASC");
            }
            keys.push(OrderKey { expression, descending });
            if keys.len() > MAX_ORDER_KEYS {
                return Err(self.error(&format!("at most {MAX_ORDER_KEYS} keys to order by")));
            }
            if !self.takes_symbol(",") {
                return Ok(keys);
            }
        }
    }

    fn bound(&mut self) -> Result<Bound, SyntaxError> {
        let bound = match self.token() {
            Token::Parameter(name) => Bound::Parameter(name.clone()),
            Token::Number(number) if number.fract() == 0.0 && *number <= f64::from(i32::MAX) => {
                Bound::Number(*number as u64)
            }
            _ => return Err(self.error("a whole number from 0 to 2147483647, or a parameter")),
        };
        self.advance();
        Ok(bound)
    }

    /// An expression whose height counts for `height`.
    fn below(&mut self, height: &mut usize) -> Result<Expression, SyntaxError> {
        let Tree { expression, height: below } = self.expression()?;
        *height = below.max(*height);
        Ok(expression)
    }

    /// One expression or several with commas between them.
    pub(super) fn list(&mut self, height: &mut usize) -> Result<Vec<Expression>, SyntaxError> {
        let mut list = vec![self.below(height)?];
        while self.takes_symbol(",") {
            list.push(self.below(height)?);
        }
        Ok(list)
    }
}
