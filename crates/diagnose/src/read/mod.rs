//! What detectors read of one trial, prepared once for all of them.

pub(crate) mod calls;
pub(crate) mod cpu;
pub(crate) mod dark;
pub(crate) mod databases;
pub(crate) mod doubles;
pub(crate) mod errors;
pub(crate) mod event_loops;
pub(crate) mod intervals;
pub(crate) mod levels;
pub(crate) mod machine;
pub(crate) mod outside;
pub(crate) mod periods;
pub(crate) mod places;
pub(crate) mod pools;
pub(crate) mod programs;
pub(crate) mod refusals;
pub(crate) mod repetition;
pub(crate) mod requests;
pub(crate) mod room;
pub(crate) mod runtimes;
pub(crate) mod seconds;
pub(crate) mod sidecars;
pub(crate) mod silence;
pub(crate) mod sql_shape;
pub(crate) mod stores;

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;

use crate::read::calls::{Handled, by_operation};
use crate::read::intervals::{Interval, intervals};
use crate::read::requests::{Request, requests};
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
