//! Evidence of `retry-storm`.

use serde::{Deserialize, Serialize};

/// With a greater share of failed attempts that conflict, the storm is one of transactions.
const CONFLICT_SHARE: f64 = 0.5;

/// One kind of call of an operation that is retried more and more while it fails.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RetryStorm {
    /// Callee.
    pub callee: String,
    /// The query as sent, or else method, address and path without ids; clipped.
    pub text: Option<String>,
    /// The calls while they fail.
    pub storm: Attempts,
    /// The calls in the parts of the trial with hardly any retries.
    pub calm: Attempts,
    /// Services below the first that retry as well.
    pub layers: Vec<Layer>,
    /// Time of a failed attempt in the storm, median, nanoseconds.
    pub failed_ns: f64,
    /// Time of a call outside the storm that succeeded at once, median, nanoseconds; `None` if there is no such call.
    pub succeeded_ns: Option<f64>,
    /// Of the attempts in the storm, the share that failed by the counts over all spans, 0 to 1; `None` if these do not
    /// include the calls.
    pub failed_share: Option<f64>,
    /// Of the failed attempts of retried calls in the storm, the share that lost to another transaction, 0 to 1.
    pub conflict_share: f64,
}

/// Calls of a part of the trial, and their attempts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Attempts {
    /// Calls in the traces.
    pub calls: usize,
    /// Attempts for each call, from 1, estimated over all requests.
    pub per_call: f64,
}

/// A service that retries what it calls.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Layer {
    /// The service.
    pub service: String,
    /// Its attempts for each call in the storm, from 1.
    pub attempts_per_call: f64,
}

impl RetryStorm {
    /// Attempts for each call in the storm, those of all layers multiplied, from 1.
    pub fn amplification(&self) -> f64 {
        self.layers.iter().map(|layer| layer.attempts_per_call).product::<f64>() * self.storm.per_call
    }

    /// Whether most failed attempts lost to another transaction.
    pub fn is_of_conflicts(&self) -> bool {
        self.conflict_share > CONFLICT_SHARE
    }
}
