//! Evidence of `generator-limited`.

use serde::{Deserialize, Serialize};

use crate::run::Verdict;

/// Signs against the load generator.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GeneratorLimited {
    /// The sign of it.
    pub signs: Vec<Sign>,
    /// Whether virtual users ran out while the generator had CPU to spare, so that more of them are what it needs.
    pub needs_users: bool,
    /// Whether so many iterations never began, because all users were busy, that the system was not given the load.
    pub is_held_back: bool,
}

impl GeneratorLimited {
    /// The worst that any sign means for the trial's figures.
    pub fn verdict(&self) -> Verdict {
        self.signs.iter().map(|sign| sign.verdict).max().unwrap_or_default()
    }

    /// The sign that stands for the largest share of the figures or of a resource, with this share, 0 to 1.
    pub fn dearest(&self) -> Option<(&SignKind, f64)> {
        let shares = self.signs.iter().filter_map(|sign| Some((&sign.kind, sign.kind.share()?)));
        shares.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// One thing that speaks against the generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sign {
    /// Meaning for the trial's figures.
    pub verdict: Verdict,
    /// Kind of sign.
    pub kind: SignKind,
}

/// Sign against the generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "sign", rename_all = "kebab-case")]
pub enum SignKind {
    /// The generator's own verdict.
    OwnVerdict {
        /// Why, in its words.
        reasons: Vec<String>,
    },
    /// All virtual users that an open load may have were busy.
    UsersBusy {
        /// Iterations that were due.
        due: u64,
        /// Of them, those that had to wait for a user.
        waited: u64,
        /// Of them, those that never began.
        dropped: u64,
        /// Iterations per second that the load offers.
        offered: f64,
        /// Iterations per second that began.
        given: f64,
    },
    /// Requests left late.
    Lateness {
        /// By how much, mean, nanoseconds.
        late_ns: f64,
        /// Mean latency from intended send, nanoseconds, above 0.
        latency_ns: f64,
        /// Whether the wait for a free user is part of it.
        includes_wait: bool,
    },
    /// The busiest thread of the generator had little CPU left.
    BusyThread {
        /// Median CPU that it used, cores.
        cores: f64,
        /// The window in which it used most.
        window: String,
    },
    /// The machine was full, and the generator took much of it.
    FullHost {
        /// The generator's share of the CPU in use, from 0.
        share: f64,
        /// The window in which it took most.
        window: String,
    },
}

impl SignKind {
    /// Of the figures or of a resource, the share that it stands for, 0 to 1; `None` if it stands for no share.
    pub fn share(&self) -> Option<f64> {
        match self {
            Self::OwnVerdict { .. } => None,
            Self::UsersBusy { due, waited, dropped, .. } => {
                Some(share_of(if *dropped > 0 { *dropped } else { *waited }, *due))
            }
            Self::Lateness { late_ns, latency_ns, .. } => Some((late_ns / latency_ns).min(1.0)),
            Self::BusyThread { cores, .. } => Some(cores.min(1.0)),
            Self::FullHost { share, .. } => Some(share.min(1.0)),
        }
    }
}

/// A part of the iterations that were due as a share of them all; 0 when none were due.
pub fn share_of(part: u64, due: u64) -> f64 {
    if due > 0 { part as f64 / due as f64 } else { 0.0 }
}
