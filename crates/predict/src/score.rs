//! A prediction beside what was measured once the change was made.

use std::collections::BTreeSet;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::histogram::Histogram;
use narrows_model::prediction::{Figures, Measured, Prediction};

use crate::Cannot;
use crate::system::{Level, levels};

/// Puts what a trial with the change measured beside a prediction.
///
/// # Errors
/// When the trial recorded no load, or another one than the prediction is for: then neither would prove anything.
pub fn score(prediction: &mut Prediction, after: &TrialEvidence) -> Result<(), Cannot> {
    let loads: BTreeSet<(u32, u64)> = prediction.levels.iter().map(|level| key(level.load)).collect();
    let measured: Vec<Level> = levels(after)?.into_iter().filter(|level| loads.contains(&key(level.load))).collect();
    if measured.len() < loads.len() {
        return Err(Cannot::OtherLoad { trial: after.trial.label() });
    }
    prediction.measured = Some(Measured { trial: after.trial.label(), figures: together(&measured) });
    Ok(())
}

fn key(load: LoadLevel) -> (u32, u64) {
    (load.users, load.arrivals.map_or(0, f64::to_bits))
}

fn together(levels: &[Level]) -> Figures {
    let seconds: f64 = levels.iter().map(|level| level.seconds).sum();
    let requests: u64 = levels.iter().map(|level| level.requests).sum();
    let mut latency = Histogram::new();
    levels.iter().for_each(|level| latency.merge(&level.latency));
    Figures { rate: requests as f64 / seconds, mean_ns: latency.mean_ns(), p95_ns: latency.quantile_ns(0.95) as f64 }
}
