//! Faults of a query that has parsed: names without a source, aggregates without a group, columns
//! that differ within a group, clauses that exclude each other.

use std::collections::HashSet;

use super::SyntaxError;
use super::ast::{Expression, Projection, Query, Rows};

/// Refuses the first fault of `query`, which was read from `text`.
pub(super) fn check(text: &str, query: &Query) -> Result<(), SyntaxError> {
    Checker { text }.query(query, &[])
}

struct Checker<'a> {
    text: &'a str,
}

impl Checker<'_> {
    fn query(&self, query: &Query, outer: &[&str]) -> Result<(), SyntaxError> {
        let mut names = outer.to_vec();
        for (index, source) in query.sources.iter().enumerate() {
            match &source.rows {
                Rows::Below(path) | Rows::Each(path) => {
                    // The first name of the first FROM is the container's, whatever it is.
                    if index > 0 || !outer.is_empty() {
                        self.expression(path, &names)?;
                    }
                }
                Rows::Subquery(inner) | Rows::EachOf(inner) => self.query(inner, &names)?,
            }
            names.push(&source.alias);
        }
        self.clauses(query)?;
        for expression in query.projected() {
            self.expression(expression, &names)?;
            self.no_nested_aggregate(expression)?;
        }
        let keys = query.order_by.iter().map(|key| &key.expression);
        for expression in query.filter.iter().chain(&query.group_by).chain(keys) {
            if let Some(call) = expression.aggregates().first() {
                return Err(self.error(call.at, "no aggregate outside SELECT"));
            }
            self.expression(expression, &names)?;
        }
        self.grouped(query)
    }

    fn clauses(&self, query: &Query) -> Result<(), SyntaxError> {
        if matches!(query.projection, Projection::Star) {
            match query.sources.len() {
                1 => {}
                0 => return Err(self.error(self.text.len(), "FROM after *")),
                _ => return Err(self.error(0, "a single source for *, or columns")),
            }
        }
        if query.top.is_some() && query.offset_limit.is_some() {
            return Err(self.error(0, "TOP or OFFSET LIMIT, not both"));
        }
        match query.order_by.first() {
            Some(key) if query.is_grouped => {
                Err(self.error(place(&key.expression), "no ORDER BY together with GROUP BY or aggregates"))
            }
            _ => Ok(()),
        }
    }

    fn expression(&self, expression: &Expression, names: &[&str]) -> Result<(), SyntaxError> {
        match expression {
            Expression::Name(name, at) if !names.contains(&name.as_str()) => {
                let expected = match names {
                    [] => "FROM with an alias of this name".to_owned(),
                    names => format!("an alias of FROM: {}", names.join(", ")),
                };
                return Err(self.error(*at, &expected));
            }
            _ => {}
        }
        if let Some(query) = expression.subquery() {
            self.query(query, names)?;
        }
        expression.children().into_iter().try_for_each(|child| self.expression(child, names))
    }

    fn no_nested_aggregate(&self, expression: &Expression) -> Result<(), SyntaxError> {
        for call in expression.aggregates() {
            if let Some(inner) = call.argument.aggregates().first() {
                return Err(self.error(inner.at, "no aggregate within an aggregate"));
            }
        }
        Ok(())
    }

    /// In a query with groups, SELECT may use aggregates and expressions of GROUP BY.
    fn grouped(&self, query: &Query) -> Result<(), SyntaxError> {
        if !query.is_grouped {
            return Ok(());
        }
        let keys: HashSet<String> = query.group_by.iter().map(ToString::to_string).collect();
        query.projected().into_iter().try_for_each(|expression| self.same_within_group(expression, &keys))
    }

    fn same_within_group(&self, expression: &Expression, keys: &HashSet<String>) -> Result<(), SyntaxError> {
        match expression {
            Expression::Aggregate(_) => Ok(()),
            _ if !keys.is_empty() && keys.contains(&expression.to_string()) => Ok(()),
            Expression::Name(_, at) => Err(self.error(*at, "an aggregate or an expression of GROUP BY")),
            _ => expression.children().into_iter().try_for_each(|child| self.same_within_group(child, keys)),
        }
    }

    fn error(&self, at: usize, expected: &str) -> SyntaxError {
        SyntaxError::at(self.text, at, expected)
    }
}

/// The byte of the first name in an expression; the start of the query if the expression has no name.
fn place(expression: &Expression) -> usize {
    match expression {
        Expression::Name(_, at) => *at,
        _ => expression.children().into_iter().map(place).find(|&at| at > 0).unwrap_or(0),
    }
}
