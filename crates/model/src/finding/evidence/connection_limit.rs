//! Evidence of `connection-limit`.

use serde::{Deserialize, Serialize};

/// A database that refuses connections because a limit of their number is reached.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConnectionLimit {
    /// Limit that is reached.
    pub limit: LimitedTo,
    /// Name in the errors, such as `too many clients already` or `53300`.
    pub name: String,
    /// The text of one of them; `None` if only codes were recorded.
    pub text: Option<String>,
    /// Share of the requests that meet one, 0 to 1.
    pub share: f64,
    /// Traces that show one.
    pub traces: usize,
    /// Services whose connections are refused, at least one in a finding.
    pub callers: Vec<String>,
    /// Replicas of these services together; 0 if they are not services of the trial.
    pub replicas: usize,
}

/// Scope of a limit of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedTo {
    /// All connections of the server.
    #[default]
    Server,
    /// Connections of one role or user.
    Role,
    /// Connections to one database of the server.
    Database,
}
