//! The result of a query: columns of one type each, and rows.

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// True or false.
    Bool,
    /// A whole number of 64 bits.
    Integer,
    /// A number with a fraction.
    Real,
    /// Text.
    Text,
    /// An instant, in nanoseconds since the Unix epoch.
    Instant,
    /// A length of time, in nanoseconds; may be negative.
    Span,
    /// A JSON value, as text.
    Json,
    /// Whatever each row brings, as SQL's columns do.
    Any,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its heading; unique within the table only where the query made it so.
    pub name: String,
    /// Content.
    pub kind: ColumnType,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// See [`ColumnType::Bool`].
    Bool(bool),
    /// See [`ColumnType::Integer`].
    Integer(i64),
    /// See [`ColumnType::Real`].
    Real(f64),
    /// See [`ColumnType::Text`] and [`ColumnType::Json`].
    Text(String),
    /// See [`ColumnType::Instant`].
    Instant(i64),
    /// See [`ColumnType::Span`].
    Span(i64),
    /// Bytes, which only SQL gives.
    Bytes(Vec<u8>),
}

/// The result of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// There were more rows than the limit lets through.
    pub is_cut: bool,
    /// The chart that the query requests, if any.
    pub chart: Option<Chart>,
}

/// A picture of a [`Table`]: KQL's `render`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Chart {
    /// Values over time.
    Time,
    /// Values over any ordered column.
    Line,
    /// One horizontal bar for each row.
    Bar,
    /// One vertical bar for each row.
    Column,
    /// Shares of a whole.
    Pie,
    /// No picture: the table itself.
    Table,
}
