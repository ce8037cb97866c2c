//! Where the values of templates come from.

use serde::{Deserialize, Serialize};

/// Where the values of `{{name}}` come from. One row is drawn per source and iteration, so that two columns of one
/// source belong together, in all steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataSource {
    /// The name in `{{name}}`.
    pub name: String,
    /// The values.
    pub values: DataValues,
}

/// The values of a data source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DataValues {
    /// A whole number drawn evenly from `from..=to`.
    Integers {
        /// Smallest.
        from: i64,
        /// Largest.
        to: i64,
    },
    /// Rows given in place or read from a file; each has the same number of columns.
    Rows {
        /// Column names; empty when there is one unnamed column.
        columns: Vec<String>,
        /// The rows, at least one.
        rows: Vec<Vec<String>>,
        /// Which row comes next.
        pick: Pick,
    },
}

/// Which row of a data source comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pick {
    /// Any, each as likely.
    #[default]
    Random,
    /// The next in order over all users, from the start again after the last.
    Sequential,
    /// The next in order over all users, each once: when none is left, the scenarios that draw from it end.
    Once,
}
