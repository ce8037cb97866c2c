//! `union`: columns by their names; a column that a table does not have is NULL there.

use super::columns::is_like;
use super::{Lowering, STATEMENT_BYTES_MAX};
use crate::catalog;
use crate::error::{Fault, TextRange};
use crate::sql::{Column, Relation, Value, named, quoted};
use crate::syntax::{Expression, Shape, Source, Union};
use crate::types::Type;

impl Lowering<'_> {
    /// The rows of all tables: those named, behind those of the table to which the operator is applied, if any.
    pub(super) fn union(
        &mut self,
        union: &Union,
        first: Option<Relation>,
        place: TextRange,
    ) -> Result<Relation, Fault> {
        let mut tables: Vec<Relation> = first.into_iter().collect();
        for table in &union.tables {
            match root(table) {
                Some(pattern) if pattern.contains('*') => {
                    for name in matching(pattern) {
                        tables.push(self.table_named(name, table.place)?);
                    }
                }
                Some(name) if union.is_fuzzy && !self.is_known_table(name) => {}
                _ => tables.push(self.table(table)?),
            }
        }
        if tables.is_empty() {
            return Err(Fault::new(place, "none of these tables exists"));
        }
        let shape = shape(&tables, union.is_inner);
        if shape.is_empty() && union.with_source.is_none() {
            return Err(Fault::new(place, "these tables have no column in common"));
        }
        let source = union.with_source.as_ref().map(|name| name.text.as_str());
        if source.is_some_and(|source| shape.iter().any(|(name, _)| name == source)) {
            return Err(Fault::new(place, format!("there are two columns `{}`", source.unwrap_or_default())));
        }
        let alias = self.alias();
        let stored = |position: usize| format!("u{position}");
        let mut texts = Vec::new();
        for (position, table) in tables.iter().enumerate() {
            let mut select: Vec<String> =
                shape.iter().enumerate().map(|(at, (name, kind))| arm(table, name, *kind, &stored(at))).collect();
            if source.is_some() {
                let name = table.name.clone().unwrap_or_else(|| format!("union_arg{position}"));
                select.push(format!("{} AS source", quoted(&name)));
            }
            // An order or a limit of one arm needs parentheses, which SQLite has only for FROM.
            let is_plain = table.order.is_empty() && table.limit.is_none();
            let text = if is_plain {
                table.select(&select, "")
            } else {
                format!("SELECT * FROM ({})", table.select(&select, ""))
            };
            texts.push(text);
        }
        let text = texts.join(" UNION ALL ");
        if text.len() > STATEMENT_BYTES_MAX {
            super::check_length(&text, place)?;
        }
        let mut columns = Vec::new();
        if let Some(source) = source {
            columns.push(Column { name: source.to_owned(), value: Value::new(Type::Text, format!("{alias}.source")) });
        }
        let names = headings(&shape);
        for (at, (name, (_, kind))) in names.into_iter().zip(&shape).enumerate() {
            columns.push(Column { name, value: Value::new(*kind, format!("{alias}.{}", named(&stored(at)))) });
        }
        Ok(Relation { columns, from: Some(format!("({text}) AS {alias}")), is_costly: true, ..Relation::default() })
    }
}

/// The name of the table that an expression begins with.
fn root(expression: &Expression) -> Option<&str> {
    match &expression.kind {
        Shape::Name(name) => Some(name),
        Shape::Pipeline(pipeline) => match &pipeline.source {
            Source::Expression(expression) => root(expression),
            _ => None,
        },
        _ => None,
    }
}

/// The tables of Application Insights that match a pattern of names; those of workspaces only if the pattern asks for
/// them.
fn matching(pattern: &str) -> impl Iterator<Item = &'static str> {
    let names = catalog::all().iter().map(|table| table.name);
    let is_workspace = pattern.starts_with("App");
    names.filter(move |name| {
        is_like(pattern, name) && if is_workspace { catalog::is_workspace(name) } else { catalog::is_classic(name) }
    })
}

/// Every name with each type that it has, in the order of first mention.
fn shape(tables: &[Relation], is_inner: bool) -> Vec<(String, Type)> {
    let mut shape: Vec<(String, Type)> = Vec::new();
    for table in tables {
        for column in &table.columns {
            let key = (column.name.clone(), column.value.kind);
            if !shape.contains(&key) {
                // A second type of one name stands beside the first.
                let at = shape.iter().rposition(|(name, _)| *name == column.name).map_or(shape.len(), |at| at + 1);
                shape.insert(at, key);
            }
        }
    }
    if is_inner {
        shape.retain(|(name, kind)| tables.iter().all(|table| has_column(table, name, *kind)));
    }
    shape
}

/// The headings: a name that has two types gets each type behind it.
fn headings(shape: &[(String, Type)]) -> Vec<String> {
    let is_double = |name: &str| shape.iter().filter(|(other, _)| other == name).count() > 1;
    let headings = shape.iter().map(|(name, kind)| match is_double(name) {
        true => format!("{name}_{}", kind.word()),
        false => name.clone(),
    });
    headings.collect()
}

fn has_column(table: &Relation, name: &str, kind: Type) -> bool {
    table.column(name).is_some_and(|column| column.value.kind == kind)
}

/// A column of one table of the union.
fn arm(table: &Relation, name: &str, kind: Type, stored: &str) -> String {
    let column = table.column(name).filter(|column| column.value.kind == kind);
    format!("{} AS {}", column.map_or("NULL", |column| &column.value.sql), named(stored))
}
