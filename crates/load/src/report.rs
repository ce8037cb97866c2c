//! Figures that are known when a load has ended, of one of its parts or of several together.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use narrows_model::load::ErrorCause;
use serde::{Deserialize, Serialize};

use crate::drivers::worker::ThreadReport;
use crate::merged::MergedTotals;
use crate::outcome::{ArrivalTotals, LoadOutcome, Phases, ThreadUse};
use crate::validity::{GeneratorFigures, judge};

/// Figures of a part of a load over its whole time: all but what its seconds hold. Times are Unix nanoseconds on the clock of
/// the process that it ran in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PartReport {
    /// When its last request had ended, or its planned time if that came later.
    pub ended_ns: i64,
    /// When nothing was due any more in any open model; none without such a model.
    pub arrivals_ended_ns: Option<i64>,
    /// Which of the plan's client addresses connections were opened from.
    pub client_addresses: BTreeSet<IpAddr>,
    /// See [`LoadOutcome::body_bytes`].
    pub body_bytes: u64,
    /// See [`LoadOutcome::statuses`].
    pub statuses: BTreeMap<u16, u64>,
    /// See [`LoadOutcome::causes`].
    pub causes: Vec<ErrorCause>,
    /// See [`LoadOutcome::phases`].
    pub phases: Phases,
    /// See [`LoadOutcome::ticks_missed`].
    pub ticks_missed: u64,
    /// See [`LoadOutcome::undrained`].
    pub undrained: u64,
    /// See [`LoadOutcome::threads`].
    pub threads: Vec<ThreadUse>,
}

impl From<ThreadReport> for PartReport {
    fn from(report: ThreadReport) -> Self {
        let totals = report.totals;
        let statuses = (0..).zip(&totals.statuses).filter(|(_, count)| **count > 0);
        let causes = totals.causes.into_iter();
        Self {
            ended_ns: report.ended_ns,
            arrivals_ended_ns: report.arrivals_ended_ns,
            client_addresses: report.client_addresses,
            body_bytes: totals.body_bytes,
            statuses: statuses.map(|(status, count)| (status, *count)).collect(),
            causes: causes.map(|((kind, cause), count)| ErrorCause { kind, text: cause.to_string(), count }).collect(),
            phases: totals.phases,
            ticks_missed: totals.ticks_missed,
            undrained: totals.undrained,
            threads: vec![report.usage],
        }
    }
}

impl PartReport {
    /// Adds the figures of another part of the same load.
    pub fn merge(&mut self, other: PartReport) {
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.arrivals_ended_ns = self.arrivals_ended_ns.max(other.arrivals_ended_ns);
        self.client_addresses.extend(other.client_addresses);
        self.body_bytes += other.body_bytes;
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        for cause in other.causes {
            match self.causes.iter_mut().find(|known| known.kind == cause.kind && known.text == cause.text) {
                Some(known) => known.count += cause.count,
                None => self.causes.push(cause),
            }
        }
        self.phases.merge(&other.phases);
        self.ticks_missed += other.ticks_missed;
        self.undrained += other.undrained;
        self.threads.extend(other.threads);
    }

    /// The outcome of a load that consists of this part, or of these parts together, and its seconds.
    pub fn conclude(mut self, started_ns: i64, merged: MergedTotals) -> LoadOutcome {
        let MergedTotals { whole: mut totals, mut counted } = merged;
        let ended_ns = self.ended_ns.max(started_ns);
        totals.seconds = (ended_ns - started_ns) as f64 / 1e9;
        if counted.sent == 0 && counted.due == 0 {
            counted = totals.clone();
        }
        let arrivals = self
            .arrivals_ended_ns
            .map(|ended_ns| ArrivalTotals::of(&totals, (ended_ns - started_ns).max(0) as f64 / 1e9));
        self.causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
        let validity = judge(&GeneratorFigures {
            ended: counted.succeeded + counted.errors.total(),
            succeeded: counted.succeeded,
            lateness_p99_ns: counted.lateness.quantile_ns(0.99),
            latency_p99_ns: counted.latency.quantile_ns(0.99),
            busiest_thread: self.threads.iter().map(|thread| thread.share()).fold(0.0, f64::max),
            arrivals: arrivals.map(|_| ArrivalTotals::of(&counted, counted.seconds)),
        });
        LoadOutcome {
            started_ns,
            ended_ns,
            totals,
            counted,
            arrivals,
            client_addresses: self.client_addresses.len().max(1),
            body_bytes: self.body_bytes,
            statuses: self.statuses,
            causes: self.causes,
            phases: self.phases,
            ticks_missed: self.ticks_missed,
            undrained: self.undrained,
            threads: self.threads,
            validity,
        }
    }

    /// Moves its times to a clock that shows so many nanoseconds less.
    pub fn shift_back(&mut self, offset_ns: i64) {
        self.ended_ns = self.ended_ns.saturating_sub(offset_ns);
        self.arrivals_ended_ns = self.arrivals_ended_ns.map(|at_ns| at_ns.saturating_sub(offset_ns));
    }
}
