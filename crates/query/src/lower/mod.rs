//! Makes SQL of a query: names are looked up and types checked on the way, in one pass.
//!
//! A table is a [`Relation`] that operators add to. What must be worked out once (a costly table with a name, a table that
//! stands for a value) becomes a common table expression of the whole statement; the language has no subquery that looks
//! at an outer row, so that all of them can stand at the top.

mod columns;
mod compare;
mod dynamic;
mod expression;
mod function;
mod join;
mod make_series;
mod mv_expand;
mod names;
mod parse;
mod schema;
mod source;
mod steps;
mod summarize;
mod top_nested;
mod union;
mod window;

use std::collections::HashMap;

use narrows_model::table::Chart;

use crate::error::{Fault, TextRange};
use crate::sql::{Column, Key, Relation, Value, named};
use crate::syntax::{Expression, Let, Query, Shape, Step};
use function::BoundFunction;

/// How long the SQL of one expression may grow, in bytes: names and functions stand for more than they look.
const EXPRESSION_BYTES_MAX: usize = 64 * 1024;
/// How long the SQL of a table may grow, in bytes. SQLite takes 1,000,000.
const STATEMENT_BYTES_MAX: usize = 900_000;
/// From which length on, in bytes, an expression that has a name is worked out once and not put in the place of its name.
const FENCE_BYTES: usize = 2_000;
/// How many columns a table may have. SQLite takes 2000.
const COLUMNS_MAX: usize = 1_000;

/// A query in SQL.
pub(crate) struct LoweredQuery {
    pub(crate) sql: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) chart: Option<Chart>,
}

/// Meaning of a name of `let`.
#[derive(Clone)]
enum Binding {
    Value(Value),
    Table(Relation),
    Function(BoundFunction),
}

/// Where an expression stands, which decides what it can name.
#[derive(Clone, Copy)]
enum Scope<'a> {
    /// Nothing but what was let.
    Nothing,
    /// The columns of a table.
    Rows(&'a Relation),
    /// Aggregates over a table.
    Summary(&'a Relation),
}

impl<'a> Scope<'a> {
    fn relation(self) -> Option<&'a Relation> {
        match self {
            Scope::Nothing => None,
            Scope::Rows(relation) | Scope::Summary(relation) => Some(relation),
        }
    }
}

#[derive(Default)]
pub(crate) struct Lowering<'a> {
    /// The text of the query, for the line numbers in run-time errors.
    text: &'a str,
    lets: Vec<(String, Binding)>,
    /// Number of names defined outside the function being called; these may be defined again in it.
    outer_lets: usize,
    /// The common table expressions so far.
    shared: Vec<String>,
    aliases: usize,
    /// The expression just read looks at other rows than its own.
    has_window: bool,
    /// Columns that must exist before the windows just read.
    inner: Vec<Column>,
    /// An aggregate was read since this was last unset.
    has_aggregate: bool,
    /// The functions being called, and the number of calls so far.
    calling: Vec<String>,
    calls: usize,
}

/// Makes SQL of a query, from which it takes the `render` at the end.
pub(crate) fn lower(query: &mut Query, text: &str) -> Result<LoweredQuery, Fault> {
    let chart = taken_chart(&mut query.body);
    let mut lowering = Lowering { text, ..Lowering::default() };
    let uses = uses(query);
    for it in &query.lets {
        lowering.bind(it, uses.get(it.name.text.as_str()).copied().unwrap_or(0))?;
    }
    let relation = lowering.table(&query.body)?;
    let mut sql = relation.sql();
    if !lowering.shared.is_empty() {
        sql = format!("WITH RECURSIVE {} {sql}", lowering.shared.join(", "));
    }
    check_length(&sql, query.body.place)?;
    Ok(LoweredQuery { sql, columns: relation.columns, chart })
}

fn taken_chart(body: &mut Expression) -> Option<Chart> {
    let Shape::Pipeline(pipeline) = &mut body.kind else { return None };
    match pipeline.operators.last()?.kind {
        Step::Render(chart) => {
            pipeline.operators.pop();
            Some(chart)
        }
        _ => None,
    }
}

fn check_length(sql: &str, place: TextRange) -> Result<(), Fault> {
    match sql.len() <= STATEMENT_BYTES_MAX {
        true => Ok(()),
        false => Err(Fault::new(place, format!("this grows over {STATEMENT_BYTES_MAX} bytes of SQL"))),
    }
}

/// How often each name is named.
fn uses(query: &Query) -> HashMap<&str, usize> {
    let mut uses = HashMap::new();
    let bodies = query.lets.iter().map(|it| &it.value).chain([&query.body]);
    for body in bodies {
        // A function may be called more than once.
        let weight = if matches!(body.kind, Shape::Function(_)) { 2 } else { 1 };
        body.visit(&mut |name| *uses.entry(name).or_insert(0) += weight);
    }
    uses
}

impl Lowering<'_> {
    /// Gives a name to a value or a table.
    fn bind(&mut self, it: &Let, uses: usize) -> Result<(), Fault> {
        if self.lets[self.outer_lets..].iter().any(|(name, _)| *name == it.name.text) {
            return Err(Fault::new(it.name.place, format!("`{}` is let a second time", it.name.text)));
        }
        let binding = if let Shape::Function(function) = &it.value.kind {
            Binding::Function(self.bound_function(function))
        } else if self.is_table(&it.value) {
            let relation = self.table(&it.value)?;
            let is_shared = relation.is_costly && uses > 1;
            let mut relation = if is_shared { self.share(relation, it.value.place)? } else { relation };
            relation.name = Some(it.name.text.clone());
            Binding::Table(relation)
        } else {
            Binding::Value(self.value(&it.value, Scope::Nothing)?)
        };
        self.lets.push((it.name.text.clone(), binding));
        Ok(())
    }

    fn binding(&self, name: &str) -> Option<&Binding> {
        self.lets.iter().rev().find(|(other, _)| other == name).map(|(_, binding)| binding)
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    /// Closes a table, so that what follows sees its columns and not what they are made of.
    fn seal(&mut self, relation: Relation, place: TextRange) -> Result<Relation, Fault> {
        let alias = self.alias();
        let (inner, outer) = sealed(&relation, &alias);
        check_length(&inner, place)?;
        Ok(Relation { from: Some(format!("({inner}) AS {alias}")), ..outer })
    }

    /// Closes a table and gives it a name of its own, so that SQLite works it out once.
    fn share(&mut self, relation: Relation, place: TextRange) -> Result<Relation, Fault> {
        let alias = self.alias();
        let (inner, outer) = sealed(&relation, &alias);
        check_length(&inner, place)?;
        let shared = format!("c{}", self.shared.len() + 1);
        self.shared.push(format!("{shared} AS MATERIALIZED ({inner})"));
        Ok(Relation { from: Some(format!("{shared} AS {alias}")), ..outer })
    }

    /// `line 3: `, for errors that occur only when the query runs; empty for a place outside the query's text.
    fn line(&self, place: TextRange) -> String {
        match self.text.get(..place.start) {
            Some(before) => format!("line {}: ", before.matches('\n').count() + 1),
            None => String::new(),
        }
    }

    /// A value that a table holds in its first row and column.
    fn first_of(&mut self, expression: &Expression) -> Result<Value, Fault> {
        let mut relation = self.table(expression)?;
        relation.columns.truncate(1);
        relation.limit = Some(relation.limit.map_or(1, |limit| limit.min(1)));
        let shared = self.share(relation, expression.place)?;
        let (from, column) = match (&shared.from, shared.columns.into_iter().next()) {
            (Some(from), Some(column)) => (from.clone(), column),
            _ => return Err(Fault::new(expression.place, "this table has no columns")),
        };
        Ok(Value::new(column.value.kind, format!("(SELECT {} FROM {from})", column.value.sql)))
    }
}

/// The text of a table, and the table that reads it under an alias; its FROM is still to come.
fn sealed(relation: &Relation, alias: &str) -> (String, Relation) {
    let mut aliases = relation.aliases();
    let mut inner: Vec<String> = Vec::new();
    let mut columns = Vec::new();
    for (column, stored) in relation.columns.iter().zip(&aliases) {
        inner.push(format!("{} AS {}", column.value.sql, named(stored)));
        let value = Value::new(column.value.kind, format!("{alias}.{}", named(stored)));
        columns.push(Column { name: column.name.clone(), value });
    }
    let mut order = Vec::new();
    for key in &relation.order {
        let mut stored = format!("order {}", order.len() + 1);
        while aliases.iter().any(|other| other.eq_ignore_ascii_case(&stored)) {
            stored.push('~');
        }
        inner.push(format!("{} AS {}", key.sql, named(&stored)));
        order.push(Key { sql: format!("{alias}.{}", named(&stored)), direction: key.direction });
        aliases.push(stored);
    }
    let text = match relation.limit {
        Some(_) => relation.select(&inner, ""),
        // Without a limit the order is the outer statement's business.
        None => Relation { order: Vec::new(), ..relation.clone() }.select(&inner, ""),
    };
    let (is_costly, is_serialized, name) = (relation.is_costly, relation.is_serialized, relation.name.clone());
    (text, Relation { columns, order, is_costly, is_serialized, name, ..Relation::default() })
}
