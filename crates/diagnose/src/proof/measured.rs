//! Figures of one trial: the figures that variants are compared by, and what decides whether they may be.

use narrows_model::evidence::TrialEvidence;
use narrows_model::proof::{LoadShape, Quantity};
use narrows_model::run::{TrialState, Verdict};

use crate::compare::cpu_seconds_per_request;

/// The figures of one finished trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Its name: `variant#2`.
    pub label: String,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// Requests that ended.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Why the generator's figures are invalid or doubtful; `None` if they are neither.
    pub doubt: Option<(Verdict, String)>,
    /// Users and arrivals per second of each counted window.
    pub levels: Vec<Level>,
    pub(super) values: [Option<f64>; Quantity::ALL.len()],
}

/// The load of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Virtual users; 0 where all load is open.
    pub vus: u32,
    /// Arrivals per second; `None` if all load is closed.
    pub rate: Option<f64>,
}

impl Measured {
    /// Of a finished trial; none of one that is not finished.
    pub fn of(trial: &TrialEvidence) -> Option<Self> {
        if trial.trial.state != TrialState::Done {
            return None;
        }
        let load = trial.load_figures();
        let value = |quantity: &Quantity| match quantity {
            Quantity::Rate => load.rate,
            Quantity::Mean => load.latency.mean_ns,
            Quantity::P50 => load.latency.p50_ns,
            Quantity::P95 => load.latency.p95_ns,
            Quantity::P99 => load.latency.p99_ns,
            Quantity::Cpu => {
                load.rate.and_then(|rate| cpu_seconds_per_request(trial, rate)).map(|seconds| seconds * 1e9)
            }
        };
        let mut values = [None; Quantity::ALL.len()];
        for (known, quantity) in values.iter_mut().zip(Quantity::ALL) {
            *known = value(quantity).filter(|value| value.is_finite() && *value > 0.0);
        }
        let validity = &trial.trial.validity;
        let reason = || validity.reasons.first().cloned().unwrap_or_default();
        Some(Self {
            label: trial.trial.label(),
            repetition: trial.trial.repetition,
            requests: load.requests,
            failed: load.failed,
            doubt: (validity.verdict != Verdict::Valid).then(|| (validity.verdict, reason())),
            levels: trial.counted_windows().map(|window| Level { vus: window.vus, rate: window.rate }).collect(),
            values,
        })
    }

    /// A figure: nanoseconds, or responses per second; `None` if it was not measured.
    pub fn value(&self, quantity: Quantity) -> Option<f64> {
        Quantity::ALL.iter().zip(self.values).find(|(known, _)| **known == quantity).and_then(|(_, value)| value)
    }

    /// Whether its arrivals were scheduled.
    pub fn shape(&self) -> LoadShape {
        match self.levels.iter().any(|level| level.rate.is_some()) {
            true => LoadShape::Open,
            false => LoadShape::Closed,
        }
    }
}
