//! `remove-stall=SERVICE`: times in which a service does not respond are gone: a command that holds a server's one thread, a stop
//! now and then, a response that waits until its first part is acknowledged.
//!
//! A request loses the delay before acknowledgement, where that is the stall; else the wait that the model has for it.

use narrows_model::finding::evidence::time_outside_spans::{GapPattern, TimeOutsideSpans};
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Change, ChangeKind};

use super::waits::without;
use super::{Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::system::{Wait, WaitCause};

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
        let otherwise_s = of_service().find_map(delay_s).unwrap_or(0.0);
        let is_meant =
            move |wait: &Wait| wait.cause == WaitCause::Stall && (wait.service == service || wait.callee == service);
        without(change, "stalls", is_meant, otherwise_s, scene)
    }
}

fn is_delayed(time: &TimeOutsideSpans) -> bool {
    time.pattern == GapPattern::DelayedAcknowledgement
}

/// Delay of a response until its first part is acknowledged, seconds; `None` if the finding is about something else.
fn delay_s(finding: &Finding) -> Option<f64> {
    match &finding.evidence {
        Evidence::TimeOutsideSpans(time) if is_delayed(time) => Some(time.heaviest.gap_ns() / 1e9),
        _ => None,
    }
}
