//! Evidence of `outage`.

use serde::{Deserialize, Serialize};

use crate::load::{ErrorCounts, Recovery};

/// A replica that was down while the load ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Outage {
    /// The replica, from 0.
    pub replica: u32,
    /// Replicas of its service, from 1.
    pub replicas: usize,
    /// When the load began, nanoseconds since the Unix epoch.
    pub load_start_ns: i64,
    /// When the load ended.
    pub load_end_ns: i64,
    /// The times in which it was down and the load felt it, in order.
    pub spells: Vec<Spell>,
    /// Of the calls that failed in the traces of that time, the share that went to its service, 0 to 1; `None` if none
    /// failed.
    pub failed_call_share: Option<f64>,
}

/// A time in which a replica was down, with what the load felt of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spell {
    /// When it went down, nanoseconds since the Unix epoch.
    pub start_ns: i64,
    /// When it was up again; `None` if it stayed down.
    pub end_ns: Option<i64>,
    /// Recovery of the load.
    pub recovery: Recovery,
}

impl Spell {
    /// How long the load felt it, nanoseconds.
    pub fn felt_ns(&self) -> i64 {
        self.recovery.until_ns - self.start_ns
    }
}

impl Outage {
    /// Requests that failed, all spells together.
    pub fn failed(&self) -> ErrorCounts {
        let mut all = ErrorCounts::default();
        self.spells.iter().for_each(|spell| all.add(spell.recovery.errors));
        all
    }

    /// How long the replica was down, all spells together, nanoseconds.
    pub fn down_ns(&self) -> i64 {
        let of = |spell: &Spell| spell.end_ns.unwrap_or(self.load_end_ns).saturating_sub(spell.start_ns).max(0);
        self.spells.iter().map(of).sum()
    }

    /// How long the load felt it, all spells together, nanoseconds.
    pub fn felt_ns(&self) -> i64 {
        self.spells.iter().map(Spell::felt_ns).sum()
    }

    /// Of the requests of that time, the share that did not succeed, 0 to 1: of those that ended or, where they would
    /// have been more, of as many as before.
    pub fn lost_share(&self) -> f64 {
        let (mut succeeded, mut expected) = (0.0, 0.0);
        for spell in &self.spells {
            let recovery = &spell.recovery;
            let usual = recovery.usual.unwrap_or(0.0) * spell.felt_ns() as f64 / 1e9;
            succeeded += recovery.ended.saturating_sub(recovery.errors.total()) as f64;
            expected += usual.max(recovery.ended as f64);
        }
        if expected > 0.0 { (1.0 - succeeded / expected).clamp(0.0, 1.0) } else { 0.0 }
    }
}
