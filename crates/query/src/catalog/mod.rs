//! Tables that a query can name, with the types that KQL gives their columns.
//!
//! Application Insights' tables have the names of a classic resource and those of a workspace. Data that a run never
//! records is an empty column or an empty table, so that queries that mention it still run.

mod tables;
mod workspace;

use std::sync::LazyLock;

use crate::types::Type;

/// A table.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The view that holds its rows, if it has any.
    pub(crate) view: Option<&'static str>,
    pub(crate) fields: Vec<Field>,
}

/// A column of a table.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) source: FieldSource,
}

/// The source of a column's values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldSource {
    /// In this column of the view.
    Column(&'static str),
    /// An expression over this column and others, in which `{}` is the view.
    Expression { column: &'static str, sql: &'static str },
    /// The same text in every row.
    Text(&'static str),
    /// No source: the column is empty.
    Nothing,
}

/// Every table, the most queried ones first.
pub(crate) fn all() -> &'static [Table] {
    static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
        let mut tables: Vec<Table> = tables::TABLES.iter().map(listed).collect();
        let renamed: Vec<Table> = workspace::TABLES.iter().filter_map(|pair| renamed(*pair, &tables)).collect();
        tables.extend(renamed);
        tables
    });
    &TABLES
}

pub(crate) fn table(name: &str) -> Option<&'static Table> {
    all().iter().find(|table| table.name == name)
}

/// Whether a table is one of Application Insights' classic tables.
pub(crate) fn is_classic(name: &str) -> bool {
    workspace::TABLES.iter().any(|(_, classic)| *classic == name)
}

/// Whether a table is one of a workspace.
pub(crate) fn is_workspace(name: &str) -> bool {
    workspace::TABLES.iter().any(|(other, _)| *other == name)
}

fn listed(listed: &tables::TableListing) -> Table {
    let view = listed.has_rows.then_some(listed.name);
    let mut fields: Vec<Field> = listed.shape.iter().flat_map(|part| fields(part)).collect();
    if view.is_none() {
        fields.iter_mut().for_each(|field| field.source = FieldSource::Nothing);
    }
    Table { name: listed.name, view, fields }
}

/// Columns from their listed form: `name:type`, `name:type=column`, `name:type=`.
fn fields(listed: &'static str) -> impl Iterator<Item = Field> {
    listed.split_whitespace().filter_map(|text| {
        let (name, rest) = text.split_once(':')?;
        let (kind, source) = match rest.split_once('=') {
            None => (rest, FieldSource::Column(name)),
            Some((kind, "")) => (kind, FieldSource::Nothing),
            Some((kind, "@details")) => (kind, FieldSource::Expression { column: name, sql: tables::DETAILS }),
            Some((kind, column)) => (kind, FieldSource::Column(column)),
        };
        Some(Field { name: name.to_owned(), kind: Type::named(kind)?, source })
    })
}

/// A table under its workspace name.
fn renamed(names: (&'static str, &'static str), tables: &[Table]) -> Option<Table> {
    let (name, classic) = names;
    let table = tables.iter().find(|table| table.name == classic)?;
    let fields = table.fields.iter().filter_map(|field| {
        let renamed = workspace::column(classic, &field.name)?;
        let source = if field.name == "itemType" { FieldSource::Text(name) } else { field.source };
        Some(Field { name: renamed, source, ..field.clone() })
    });
    let fields = fields.chain(self::fields(workspace::MORE)).collect();
    Some(Table { name, view: table.view, fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_name_of_its_own_and_a_type() {
        for listed in &tables::TABLES {
            let words = listed.shape.iter().flat_map(|part| part.split_whitespace()).count();
            assert_eq!(table(listed.name).unwrap().fields.len(), words, "{}", listed.name);
        }
        for table in all() {
            let mut names: Vec<_> = table.fields.iter().map(|field| &field.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.fields.len(), "{}", table.name);
        }
    }

    #[test]
    fn workspaces_have_their_own_names() {
        for (name, column, stored) in [
            ("AppRequests", "TimeGenerated", FieldSource::Column("timestamp_ns")),
            ("AppRequests", "DurationMs", FieldSource::Column("duration")),
            ("AppRequests", "Id", FieldSource::Column("id")),
            ("AppRequests", "Type", FieldSource::Text("AppRequests")),
            ("AppDependencies", "DependencyType", FieldSource::Column("type")),
            ("AppExceptions", "ExceptionType", FieldSource::Column("type")),
            ("AppMetrics", "Max", FieldSource::Column("valueMax")),
            ("AppPerformanceCounters", "Value", FieldSource::Column("value")),
            ("AppTraces", "UserId", FieldSource::Nothing),
            ("AppPageViews", "Name", FieldSource::Nothing),
        ] {
            let field = table(name).unwrap().fields.iter().find(|field| field.name == column);
            assert!(field.is_some_and(|field| field.source == stored), "{name}.{column}");
        }
        for (name, column) in [("AppMetrics", "Value"), ("AppRequests", "AppName"), ("AppRequests", "timestamp")] {
            assert!(table(name).unwrap().fields.iter().all(|field| field.name != column), "{name}.{column}");
        }
    }
}
