//! What detectors read of one trial, prepared once for all of them.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;

use crate::calls::{Handled, by_operation};
use crate::intervals::{Interval, intervals};
use crate::requests::{Request, requests};
use crate::thresholds::Thresholds;

/// The requests of each operation, by service and operation.
pub(crate) type Operations<'a> = BTreeMap<(&'a str, String), Vec<Handled<'a>>>;

/// One trial as detectors see it.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// What the run file says.
    pub(crate) trial: &'a TrialEvidence,
    /// What to compare with.
    pub(crate) thresholds: &'a Thresholds,
    /// Parts of the trial in which a median means something, in order of time.
    pub(crate) intervals: &'a [Interval],
    /// The traces cut into requests, one for each service that handled one.
    pub(crate) requests: &'a [Request<'a>],
    /// The same with their calls, by operation.
    pub(crate) operations: &'a Operations<'a>,
}

impl Reading<'_> {
    /// Prepares a trial and hands it on.
    pub fn with<T>(trial: &TrialEvidence, thresholds: &Thresholds, read: impl FnOnce(&Reading<'_>) -> T) -> T {
        let intervals = intervals(trial, thresholds);
        let requests = requests(&trial.traces, thresholds);
        let operations = by_operation(&requests);
        read(&Reading { trial, thresholds, intervals: &intervals, requests: &requests, operations: &operations })
    }
}
