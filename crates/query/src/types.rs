//! The types of KQL that this part of it knows.

use narrows_model::table::ColumnType;

/// A type. `int` is a `long` here: both are 64 bits wide in SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Bool,
    Long,
    Real,
    Text,
    Datetime,
    Timespan,
    Dynamic,
}

impl Type {
    /// The type that a word names, as in `datatable (x: long)`.
    pub(crate) fn named(word: &str) -> Option<Type> {
        Some(match word {
            "bool" | "boolean" => Type::Bool,
            "int" | "long" => Type::Long,
            "real" | "double" => Type::Real,
            "string" => Type::Text,
            "datetime" | "date" => Type::Datetime,
            "timespan" | "time" => Type::Timespan,
            "dynamic" => Type::Dynamic,
            _ => return None,
        })
    }

    /// KQL's word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::Long => "long",
            Type::Real => "real",
            Type::Text => "string",
            Type::Datetime => "datetime",
            Type::Timespan => "timespan",
            Type::Dynamic => "dynamic",
        }
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Type::Long | Type::Real)
    }

    /// Whether SQLite holds it as an integer.
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Type::Bool | Type::Long | Type::Datetime | Type::Timespan)
    }

    /// The type that both fit into.
    pub(crate) fn common(self, other: Type) -> Option<Type> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (a, b) if a.is_number() && b.is_number() => Some(Type::Real),
            _ => None,
        }
    }

    /// Meaning of a column of a result.
    pub(crate) fn column(self) -> ColumnType {
        match self {
            Type::Bool => ColumnType::Bool,
            Type::Long => ColumnType::Integer,
            Type::Real => ColumnType::Real,
            Type::Text => ColumnType::Text,
            Type::Datetime => ColumnType::Instant,
            Type::Timespan => ColumnType::Span,
            Type::Dynamic => ColumnType::Json,
        }
    }
}
