//! Operations and their calls as a reader would have counted them, from a few totals.
//!
//! Seconds follow one another from the trial's start, as those of the load do.

use narrows_model::histogram::Histogram;
use narrows_model::operation::{CallEvidence, CallSecond, OperationEvidence, OperationSecond};

use crate::TRIAL_START_NS;

const SECOND_NS: i64 = 1_000_000_000;

/// An operation that completed `rate` times in each of these seconds, every time in `duration_ms`.
pub fn operation(service: &str, name: &str, seconds: u32, rate: f64, duration_ms: f64) -> OperationEvidence {
    let completed = rate * f64::from(seconds);
    let mut duration = Histogram::new();
    duration.record_n((duration_ms * 1e6) as u64, completed.round() as u64);
    let second = |s| OperationSecond {
        start_ns: TRIAL_START_NS + i64::from(s) * SECOND_NS,
        completed: rate,
        duration_sum_ns: rate * duration_ms * 1e6,
    };
    OperationEvidence {
        service: service.into(),
        name: name.into(),
        completed,
        failed: 0.0,
        duration,
        seconds: (0..seconds).map(second).collect(),
        calls: Vec::new(),
        spans_left_out: 0,
    }
}

/// The calls to a document store; each second says how many succeeded, were throttled, and what they were charged.
pub fn store_calls(name: &str, seconds: impl IntoIterator<Item = (f64, f64, f64)>) -> CallEvidence {
    let seconds: Vec<CallSecond> = seconds
        .into_iter()
        .zip(0_i64..)
        .map(|((succeeded, throttled, charge), s)| CallSecond {
            start_ns: TRIAL_START_NS + s * SECOND_NS,
            succeeded,
            throttled,
            failed: 0.0,
            charge,
        })
        .collect();
    let sum = |value: fn(&CallSecond) -> f64| seconds.iter().map(value).sum::<f64>();
    CallEvidence {
        target: "azure.cosmosdb".into(),
        name: name.into(),
        is_database: true,
        succeeded: sum(|second| second.succeeded),
        throttled: sum(|second| second.throttled),
        failed: 0.0,
        charge: Some(sum(|second| second.charge)),
        seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_those_of_the_seconds() {
        let calls = store_calls("query", [(9.0, 1.0, 29.0), (18.0, 0.0, 58.0)]);
        assert_eq!((calls.attempts(), calls.throttled, calls.charge), (28.0, 1.0, Some(87.0)));
        let operation = operation("shop", "GET /", 4, 10.0, 20.0);
        assert_eq!((operation.completed, operation.duration.quantiles().count), (40.0, 40));
        assert_eq!(operation.seconds.iter().map(|second| second.completed).sum::<f64>(), operation.completed);
    }
}
