//! `release-before=SERVICE[,CALL]`: what is called while a lock, a transaction or a connection is held is called outside of the
//! hold; without a callee, everything.
//!
//! The request waits for its calls as long as now, and others no longer wait for them.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind};

use super::resize_pool::grown_connections;
use super::sections::{each_section, is_gone, sections};
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::system::{Section, System, Wait};

/// Share of a hold in which other services are called, from which on the calls are what to move.
const CALLS_SHARE_MIN: f64 = 0.5;
/// Share of a hold that is left at least: the lock is taken and given back.
const HELD_LEFT_MIN: f64 = 0.01;

pub(crate) struct ReleaseBefore;

impl Method for ReleaseBefore {
    fn kind(&self) -> ChangeKind {
        ChangeKind::ReleaseBefore
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,CALL]"
    }

    fn description(&self, change: &Change) -> String {
        match parts(&change.target) {
            (service, Some(callee)) => format!("calling {callee} outside of what {service} holds"),
            (service, None) => format!("making the calls of {service} outside of what it holds"),
        }
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        let is_idle = match &finding.evidence {
            Evidence::LockWait(wait) => wait.idle_in_transaction.unwrap_or(0.0) > wait.active.unwrap_or(0.0),
            Evidence::PoolWait(wait) => {
                wait.other_calls_ns >= CALLS_SHARE_MIN * (wait.other_calls_ns + wait.query_ns)
                    && wait.other_calls_ns > 0.0
            }
            _ => false,
        };
        is_idle.then(|| Change::new(self.kind(), &finding.resource))
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let is_larger = grown_connections(&change.target, before, after).is_some();
        (!is_larger && is_gone(change, before, after)).then(|| change.clone())
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let (service, callee) = parts(&change.target);
        let held = sections(service, scene)?;
        let found = || scene.diagnosed.findings.iter().filter(|finding| finding.resource == service);
        let found_s = found().filter_map(found_calls_s).fold(0.0, f64::max);
        let of_section = move |section: &Section, callee: Option<&str>| match calls_s(section, callee) {
            known_s if known_s > 0.0 || callee.is_some() => known_s,
            _ => found_s.min(section.held_s),
        };
        let calls_s = held.iter().map(|section| of_section(section, callee)).fold(0.0, f64::max);
        if calls_s <= 0.0 {
            return Err(Cannot::NothingHeld { place: service.to_owned() });
        }
        let (service, callee) = (service.to_owned(), callee.map(str::to_owned));
        let adjust = move |system: &mut System| {
            each_section(system, &service, |section| {
                let left_s = section.held_s - of_section(section, callee.as_deref());
                section.held_s = left_s.max(HELD_LEFT_MIN * section.held_s);
                section.held_for.retain(|wait| !is_meant(wait, callee.as_deref()));
            });
        };
        Ok(Effect {
            cases: vec![Case::new(adjust)],
            assumptions: vec![Assumption::CallsOutsideHold { calls_ns: calls_s * 1e9 }],
            ..Effect::default()
        })
    }
}

/// Time of a request for which something is held and other things are done, as a finding gives it, seconds.
fn found_calls_s(finding: &Finding) -> Option<f64> {
    match &finding.evidence {
        Evidence::PoolWait(wait) => Some(wait.other_calls_ns / 1e9),
        Evidence::LockWait(wait) if wait.rate > 0.0 => wait.idle_in_transaction.map(|idle| idle / wait.rate),
        _ => None,
    }
}

/// The service and the callee of a target.
fn parts(target: &str) -> (&str, Option<&str>) {
    target.split_once(',').map_or((target, None), |(service, callee)| (service, Some(callee)))
}

fn is_meant(wait: &Wait, callee: Option<&str>) -> bool {
    callee.is_none_or(|callee| wait.callee == callee)
}

/// Time of a request in calls that are made in a section, seconds.
fn calls_s(section: &Section, callee: Option<&str>) -> f64 {
    section.held_for.iter().filter(|wait| is_meant(wait, callee)).map(|wait| wait.request_s).sum()
}
