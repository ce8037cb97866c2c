//! `remove-stall=SERVICE`: times in which a service answers nothing are gone: a command that holds a server's one thread, a stop
//! now and then, a response that waits until its first part is acknowledged.
//!
//! What a stall costs a request is the delay before acknowledgement, where that is the stall; else what the mean latency has
//! above the median: half of the requests at least meet none.

use narrows_model::finding::evidence::time_outside_spans::{GapPattern, TimeOutsideSpans};
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Change, ChangeKind};

use super::waits::without;
use super::{Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::system::{Level, Wait, WaitCause};

pub(crate) struct RemoveStall;

impl Method for RemoveStall {
    fn kind(&self) -> ChangeKind {
        ChangeKind::RemoveStall
    }

    fn usage(&self) -> &'static str {
        "SERVICE"
    }

    fn description(&self, change: &Change) -> String {
        format!("no stalls of {}", change.target)
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        let is_stall = match &finding.evidence {
            Evidence::BlockingCommand(_) | Evidence::Stall(_) => true,
            Evidence::TimeOutsideSpans(time) => is_delayed(time),
            _ => false,
        };
        is_stall.then(|| Change::new(self.kind(), &finding.resource))
    }

    fn made_in_requests(&self, change: &Change, _before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        (!after.suggests(change)).then(|| change.clone())
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let service = change.target.clone();
        let of_service = || scene.diagnosed.findings.iter().filter(|finding| finding.resource == service);
        let otherwise_s = of_service().find_map(|finding| stall_s(finding, &scene.system.levels)).unwrap_or(0.0);
        let is_meant = move |wait: &Wait| wait.cause == WaitCause::Stall && wait.service == service;
        without(change, "stalls", is_meant, otherwise_s, scene)
    }
}

fn is_delayed(time: &TimeOutsideSpans) -> bool {
    time.pattern == GapPattern::DelayedAcknowledgement
}

/// Time of a request that stalls take, mean, seconds; `None` if the finding is about no stall.
fn stall_s(finding: &Finding, levels: &[Level]) -> Option<f64> {
    match &finding.evidence {
        Evidence::TimeOutsideSpans(time) if is_delayed(time) => Some(time.heaviest.gap_ns() / 1e9),
        Evidence::BlockingCommand(_) | Evidence::Stall(_) => Some(above_median_s(levels)),
        _ => None,
    }
}

/// What mean latency has above the median, over all requests of these levels, seconds.
fn above_median_s(levels: &[Level]) -> f64 {
    let above_s = |level: &Level| (level.mean_s() - level.latency.quantile_ns(0.5) as f64 / 1e9).max(0.0);
    let requests: f64 = levels.iter().map(|level| level.requests as f64).sum();
    let sum: f64 = levels.iter().map(|level| level.requests as f64 * above_s(level)).sum();
    if requests > 0.0 { sum / requests } else { 0.0 }
}
