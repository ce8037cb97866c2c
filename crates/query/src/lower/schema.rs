//! `getschema`: one row per column of a table.

use super::Lowering;
use crate::sql::{Column, Relation, Value, quoted};
use crate::types::Type;

impl Lowering<'_> {
    pub(super) fn schema(&mut self, relation: &Relation) -> Relation {
        let rows = relation.columns.iter().enumerate().map(|(at, column)| {
            let (kind, name) = (column.value.kind, quoted(&column.name));
            format!("({name}, {at}, {}, {})", quoted(system_type(kind)), quoted(kind.word()))
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        let alias = self.alias();
        let columns = [
            ("ColumnName", Type::Text),
            ("ColumnOrdinal", Type::Long),
            ("DataType", Type::Text),
            ("ColumnType", Type::Text),
        ];
        let columns = columns.into_iter().enumerate().map(|(at, (name, kind))| Column {
            name: name.to_owned(),
            value: Value::new(kind, format!("{alias}.column{}", at + 1)),
        });
        Relation {
            columns: columns.collect(),
            from: Some(format!("(VALUES {rows}) AS {alias}")),
            ..Relation::default()
        }
    }
}

/// The .NET type with which Kusto represents a type.
fn system_type(kind: Type) -> &'static str {
    match kind {
        Type::Bool => "System.SByte",
        Type::Long => "System.Int64",
        Type::Real => "System.Double",
        Type::Text => "System.String",
        Type::Datetime => "System.DateTime",
        Type::Timespan => "System.TimeSpan",
        Type::Dynamic => "System.Object",
    }
}
