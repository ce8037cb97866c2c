//! Parts of a load that several machines sent together.

use serde::{Deserialize, Serialize};

use crate::run::Verdict;

/// Another machine's clock less this one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Nanoseconds; above 0 if the other clock is ahead.
    pub offset_ns: i64,
    /// How far off that may be at most, either way: half the time that the messages took.
    pub uncertainty_ns: i64,
}

/// Part of a load that an agent sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartSummary {
    /// Name of the agent.
    pub agent: String,
    /// Labels of the agent, each `KEY=VALUE`.
    pub labels: Vec<String>,
    /// Load threads that the agent may use.
    pub cores: usize,
    /// Number of its first load thread. User `i` of a scenario belongs to thread `i` modulo `of`.
    pub first: usize,
    /// Its load threads.
    pub threads: usize,
    /// Load threads of the whole load.
    pub of: usize,
    /// The agent's clock, against that of the machine that the run is on.
    pub clock: ClockOffset,
    /// Requests that it sent, as far as they count.
    pub sent: u64,
    /// CPU time of its load threads ÷ the time they ran, the mean of them, 0 to 1.
    pub cpu: f64,
    /// Whether its figures can be trusted.
    pub verdict: Verdict,
    /// Loss of its agent, if it was lost.
    pub lost: Option<LostShare>,
}

/// Share of a load that was lost with an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LostShare {
    /// The share of the load, above 0 to 1.
    pub share: f64,
    /// From when on nothing that the agent sent counts, in seconds since the load began.
    pub from_s: f64,
    /// When another agent took over, in seconds since the load began; `None` if none did.
    pub until_s: Option<f64>,
    /// Reason, as a clause.
    pub reason: String,
}
