//! Input of detectors from one trial, prepared once for all of them.

pub(crate) mod calls;
pub(crate) mod conversations;
pub(crate) mod cpu;
pub(crate) mod databases;
pub(crate) mod doubles;
pub(crate) mod error_reports;
pub(crate) mod error_words;
pub(crate) mod errors;
pub(crate) mod event_loops;
pub(crate) mod full_pools;
pub(crate) mod headroom;
pub(crate) mod intervals;
pub(crate) mod levels;
pub(crate) mod machine;
pub(crate) mod one_request;
pub(crate) mod paging;
pub(crate) mod peers;
pub(crate) mod periods;
pub(crate) mod place_loads;
pub(crate) mod pools;
pub(crate) mod programs;
pub(crate) mod refusals;
pub(crate) mod repetition;
pub(crate) mod requests;
pub(crate) mod runtimes;
pub(crate) mod seconds;
pub(crate) mod servers;
pub(crate) mod shapes;
pub(crate) mod sidecars;
pub(crate) mod silent_services;
pub(crate) mod sql_shape;
pub(crate) mod stores;
pub(crate) mod target;
pub(crate) mod thread_pools;
pub(crate) mod threads;
pub(crate) mod time_outside;
pub(crate) mod trend;
pub(crate) mod unexplained_time;
pub(crate) mod unseen_calls;
pub(crate) mod worst_replica;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::trace::Forest;

use crate::critical_path::{self, TimeUse};
use crate::read::calls::{Handled, by_operation};
use crate::read::conversations::Conversations;
use crate::read::intervals::{Interval, intervals};
use crate::read::one_request::{is_one_request, of_one_request};
use crate::read::requests::{Request, requests};
use crate::thresholds::Thresholds;

/// The requests of each operation, by service and operation.
pub(crate) type Operations<'a> = BTreeMap<(&'a str, String), Vec<Handled<'a>>>;

/// One trial as detectors see it.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// Evidence from the run file.
    pub(crate) trial: &'a TrialEvidence,
    /// Thresholds to compare with.
    pub(crate) thresholds: &'a Thresholds,
    /// Parts of the trial with meaningful medians, in order of time.
    pub(crate) intervals: &'a [Interval],
    /// The spans of each trace as trees.
    pub(crate) forests: &'a [Forest<'a>],
    /// The traces cut into requests, one for each service that handled one.
    pub(crate) requests: &'a [Request<'a>],
    /// The same with their calls, by operation.
    pub(crate) operations: &'a Operations<'a>,
    /// True if the trial is one request, without a load.
    pub(crate) is_one_request: bool,
    /// See [`Reading::spent`].
    spent: &'a OnceCell<TimeUse>,
    /// See [`Reading::conversations`].
    conversations: &'a OnceCell<Conversations>,
}

impl<'a> Reading<'a> {
    /// Time of the requests by category; their paths are walked once, on first use.
    pub(crate) fn spent(&self) -> &'a TimeUse {
        self.spent.get_or_init(|| critical_path::spent(self))
    }

    /// True if spans show requests of the service.
    pub(crate) fn has_spans_of(&self, service: &str) -> bool {
        self.operations.keys().any(|(known, _)| *known == service)
    }

    /// Calls between processes as their sockets show them; read on first use.
    pub(crate) fn conversations(&self) -> &'a Conversations {
        self.conversations.get_or_init(|| Conversations::of(self.trial, self.intervals))
    }

    /// Prepares a trial and hands it on.
    pub fn with<T>(trial: &TrialEvidence, thresholds: &Thresholds, read: impl FnOnce(&Reading<'_>) -> T) -> T {
        let is_one_request = is_one_request(trial);
        let of_one = of_one_request(thresholds);
        let thresholds = if is_one_request { &of_one } else { thresholds };
        let intervals = intervals(trial, thresholds);
        let forests = Forest::of_all(&trial.traces);
        let requests = requests(&forests, thresholds);
        let operations = by_operation(&requests);
        let (forests, requests, operations) = (&forests, &requests, &operations);
        let (intervals, spent, conversations) = (&intervals, &OnceCell::new(), &OnceCell::new());
        read(&Reading {
            trial,
            thresholds,
            intervals,
            forests,
            requests,
            operations,
            is_one_request,
            spent,
            conversations,
        })
    }
}
