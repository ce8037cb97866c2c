//! `raise-limit=SERVICE[,N]`: a service works on so many requests at a time; without a number, on all that are under way under
//! the heaviest load.
//!
//! The limit may be of workers, threads or connections that are accepted: it is seen from outside, as requests that wait while
//! no more are at work than at a lighter load. A request is at work as long as now, and uses the same CPU.

use narrows_model::finding::evidence::time_outside_spans::{GapPattern, TimeOutsideSpans};
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, Resource, ResourceKind};
use narrows_model::units;

use super::sections::{each_section, held_s, is_gone, sections};
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::{GROWTH_MIN, ReadTrial};
use crate::system::{Level, System};

pub(crate) struct RaiseLimit;

impl Method for RaiseLimit {
    fn kind(&self) -> ChangeKind {
        ChangeKind::RaiseLimit
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,N]"
    }

    fn description(&self, change: &Change) -> String {
        match change.amount {
            Some(requests) => format!("{} requests at a time in {}", units::number(requests), change.target),
            None => format!("as many requests at a time in {} as there are", change.target),
        }
    }

    fn against(&self, limit: &Resource) -> Option<Change> {
        matches!(limit.kind, ResourceKind::Requests | ResourceKind::Threads)
            .then(|| Change::new(self.kind(), &limit.name))
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        let is_limited = match &finding.evidence {
            Evidence::AcceptQueue(_) | Evidence::ThreadPool(_) => true,
            Evidence::EventLoopLag(lag) => lag.is_waiting(),
            Evidence::TimeOutsideSpans(time) => is_growing(time),
            _ => false,
        };
        is_limited.then(|| Change::new(self.kind(), &finding.resource))
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        is_gone(change, before, after).then(|| change.clone())
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let limited = sections(&change.target, scene)?;
        let places = change.amount.unwrap_or_else(|| under_way(&scene.system.levels)).ceil().max(1.0) as u32;
        let target = change.target.clone();
        let adjust = move |system: &mut System| each_section(system, &target, |section| section.places = places);
        Ok(Effect {
            cases: vec![Case::new(adjust)],
            assumptions: vec![Assumption::SectionTakesAsLong { held_ns: held_s(&limited) * 1e9 }],
            ..Effect::default()
        })
    }
}

/// The most requests that are under way at any level: all users, or by Little's law.
pub(crate) fn under_way(levels: &[Level]) -> f64 {
    let of_level = |level: &Level| match level.load.arrivals {
        None => f64::from(level.load.users),
        Some(_) => level.rate() * level.mean_s(),
    };
    levels.iter().map(of_level).fold(1.0, f64::max)
}

/// Whether requests wait before the service longer under more load.
fn is_growing(time: &TimeOutsideSpans) -> bool {
    let is_longer = |lightest: f64| time.heaviest.gap_ns() >= GROWTH_MIN * lightest;
    match time.pattern {
        GapPattern::Grows => true,
        GapPattern::Unknown => time.lightest.is_some_and(|lightest| is_longer(lightest.gap_ns())),
        GapPattern::Constant | GapPattern::DelayedAcknowledgement => false,
    }
}
