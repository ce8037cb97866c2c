//! Pieces of SQL: names, literals, and a table under construction.
//!
//! A [`Relation`] is one SELECT that is still open: operators add to it for as long as that keeps their meaning, so
//! that a chain of them becomes one flat statement over the view's own columns, which SQLite can run from its indexes.
//! [`Relation::sql`] closes it.

use crate::types::Type;

/// A value in SQL, with the type that KQL gives it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    pub(crate) sql: String,
    pub(crate) kind: Type,
    /// Its value, if it is known before the query runs.
    pub(crate) constant: Option<Constant>,
    /// For a value within JSON: the document, and the path into it.
    pub(crate) within: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Constant {
    /// Of any type that SQLite holds as an integer.
    Whole(i64),
    Real(f64),
    Text(String),
    Json(serde_json::Value),
    /// `typeof(…)`
    Type(Type),
    Null,
}

impl Value {
    pub(crate) fn new(kind: Type, sql: impl Into<String>) -> Value {
        Value { sql: sql.into(), kind, constant: None, within: None }
    }

    pub(crate) fn whole(kind: Type, value: i64) -> Value {
        Value { constant: Some(Constant::Whole(value)), ..Value::new(kind, whole(value)) }
    }

    pub(crate) fn real(value: f64) -> Value {
        Value { constant: Some(Constant::Real(value)), ..Value::new(Type::Real, format!("{value:?}")) }
    }

    pub(crate) fn text(value: &str) -> Value {
        Value { constant: Some(Constant::Text(value.to_owned())), ..Value::new(Type::Text, quoted(value)) }
    }

    pub(crate) fn null(kind: Type) -> Value {
        Value { constant: Some(Constant::Null), ..Value::new(kind, "NULL") }
    }

    pub(crate) fn json(value: serde_json::Value) -> Value {
        let sql = quoted(&value.to_string());
        Value { constant: Some(Constant::Json(value)), ..Value::new(Type::Dynamic, sql) }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.constant == Some(Constant::Null)
    }

    /// The value that JSON holds: a string without quotation marks, a number, or JSON again.
    pub(crate) fn scalar(&self) -> String {
        match &self.within {
            _ if self.kind != Type::Dynamic => self.sql.clone(),
            Some((document, path)) => format!("({document} ->> {path})"),
            None => format!("({} ->> '$')", self.sql),
        }
    }

    /// The constant whole number it is.
    pub(crate) fn as_whole(&self) -> Option<i64> {
        match self.constant {
            Some(Constant::Whole(value)) => Some(value),
            _ => None,
        }
    }

    /// The constant string it is.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.constant {
            Some(Constant::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// A string as SQL writes it.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as SQL writes it.
pub(crate) fn named(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A whole number as SQL writes it. The least has no literal of its own.
pub(crate) fn whole(value: i64) -> String {
    match value {
        i64::MIN => "(-9223372036854775807 - 1)".to_owned(),
        value if value < 0 => format!("({value})"),
        value => value.to_string(),
    }
}

/// A column of a table under construction.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Its expression, over the table's FROM.
    pub(crate) value: Value,
}

/// Sort key of a table.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) sql: String,
    /// ` DESC` and where NULLs go.
    pub(crate) direction: &'static str,
}

/// A table under construction: one SELECT that is still open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Relation {
    pub(crate) columns: Vec<Column>,
    /// Source behind FROM; nothing for a table of constants.
    pub(crate) from: Option<String>,
    pub(crate) filters: Vec<String>,
    pub(crate) order: Vec<Key>,
    pub(crate) limit: Option<i64>,
    /// It costs something to evaluate twice, so that a name for it is not put in its place.
    pub(crate) is_costly: bool,
    /// Its rows have an order that `row_number` can count in.
    pub(crate) is_serialized: bool,
    /// The name it goes by, which `union withsource` returns.
    pub(crate) name: Option<String>,
}

impl Relation {
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Replaces the column of the same name, or appends a new one.
    pub(crate) fn set(&mut self, column: Column) {
        match self.columns.iter_mut().find(|other| other.name == column.name) {
            Some(other) => other.value = column.value,
            None => self.columns.push(column),
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// The statement, with its columns under their own names.
    pub(crate) fn sql(&self) -> String {
        let columns: Vec<_> =
            self.columns.iter().map(|it| format!("{} AS {}", it.value.sql, named(&it.name))).collect();
        self.select(&columns, "")
    }

    /// The statement over given columns, with an end such as GROUP BY, before the order and the limit.
    pub(crate) fn select(&self, columns: &[String], grouping: &str) -> String {
        let mut sql = format!("SELECT {}", columns.join(", "));
        if let Some(from) = &self.from {
            sql.push_str(&format!(" FROM {from}"));
        }
        if !self.filters.is_empty() {
            sql.push_str(&format!(" WHERE {}", self.filters.join(" AND ")));
        }
        sql.push_str(grouping);
        if !self.order.is_empty() {
            sql.push_str(&format!(" ORDER BY {}", self.keys()));
        }
        if let Some(limit) = self.limit {
            sql.push_str(&format!(" LIMIT {limit}"));
        }
        sql
    }

    /// Keys behind ORDER BY.
    pub(crate) fn keys(&self) -> String {
        self.order.iter().map(|key| format!("{}{}", key.sql, key.direction)).collect::<Vec<_>>().join(", ")
    }

    /// Names for the columns under which SQLite, which knows no upper and lower case in names, tells them apart.
    pub(crate) fn aliases(&self) -> Vec<String> {
        let mut taken: Vec<String> = Vec::new();
        for column in &self.columns {
            let is_taken = |name: &str| taken.iter().any(|other| other.eq_ignore_ascii_case(name));
            let mut alias = column.name.clone();
            while alias.is_empty() || is_taken(&alias) {
                alias.push('~');
            }
            taken.push(alias);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_quotation_marks() {
        assert_eq!(quoted("it's; DROP TABLE x --"), "'it''s; DROP TABLE x --'");
        assert_eq!(named("a\"b"), "\"a\"\"b\"");
        assert_eq!(whole(-5), "(-5)");
    }

    #[test]
    fn names_that_differ_by_case_get_aliases_that_do_not() {
        let column = |name: &str| Column { name: name.to_owned(), value: Value::new(Type::Long, "1") };
        let relation = Relation { columns: vec![column("a"), column("A"), column("a~")], ..Relation::default() };
        assert_eq!(relation.aliases(), ["a", "A~", "a~~"]);
    }
}
