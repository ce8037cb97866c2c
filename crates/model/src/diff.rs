//! What differs between two variants: operations, their calls, and findings.

use serde::{Deserialize, Serialize};

use crate::comparison::Change;
use crate::finding::Finding;

/// Two variants beside each other, perhaps of two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// What is compared with, such as `drone-delivery-20260101-120000:test-1`.
    pub before: String,
    /// What is compared.
    pub after: String,
    /// The operations of both, by service and name.
    pub operations: Vec<OperationDiff>,
    /// The findings of both, those of `after` first, in their order.
    pub findings: Vec<FindingDiff>,
    /// What limits the comparison, in whole sentences.
    pub caveats: Vec<String>,
    /// What it means, in one sentence.
    pub sentence: String,
}

/// On which side something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// After only.
    Appeared,
    /// Before only.
    Vanished,
    /// On both sides, and different beyond noise.
    Changed,
    /// On both sides, and not shown to differ.
    Same,
}

/// One operation on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationDiff {
    /// The service that responds.
    pub service: String,
    /// Its name, such as `GET /orders`.
    pub name: String,
    /// Of the operation itself, whatever its calls do.
    pub fate: Fate,
    /// Mean duration before, nanoseconds; none when it was not there.
    pub before_ns: Option<f64>,
    /// Mean duration after, nanoseconds; none when it is not there.
    pub after_ns: Option<f64>,
    /// How the mean changed; none when it is on one side only or too little is known.
    pub mean: Option<Change>,
    /// Its calls, most attempts first.
    pub calls: Vec<CallDiff>,
}

/// One kind of call of an operation on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallDiff {
    /// What is called: a service, a database's system or an address.
    pub target: String,
    /// The name of the client spans.
    pub name: String,
    /// Of this kind of call.
    pub fate: Fate,
    /// Attempts for each completed operation before; none when there were none.
    pub before: Option<f64>,
    /// The same after.
    pub after: Option<f64>,
}

/// One finding on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindingDiff {
    /// Whether it came, went, or costs more or less than before.
    pub fate: Fate,
    /// As it was.
    pub before: Option<Finding>,
    /// As it is.
    pub after: Option<Finding>,
}
