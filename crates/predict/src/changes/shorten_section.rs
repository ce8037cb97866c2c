//! `shorten-section=SERVICE[,FACTOR]`: what requests take turns at takes a part of its time; half without a factor.
//!
//! The CPU that is used in the section shrinks as much, and so do the calls that are made there. A later trial shows the factor
//! by the CPU and the time at the disk of a request, or by the wait for the calls.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, Resource, ResourceKind};
use narrows_model::units;

use super::sections::{each_section, held_s, sections};
use super::{Case, Effect, Method, Scene, scale_all_cpu};
use crate::Cannot;
use crate::recognition::{ReadTrial, own_time_factor, wait_factor};
use crate::system::System;

/// Half the time.
const FACTOR: f64 = 2.0;

pub(crate) struct ShortenSection;

impl Method for ShortenSection {
    fn kind(&self) -> ChangeKind {
        ChangeKind::ShortenSection
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,FACTOR]"
    }

    fn description(&self, change: &Change) -> String {
        let factor = units::number(change.amount.unwrap_or(FACTOR));
        format!("making what requests of {} take turns at {factor} times as short", change.target)
    }

    fn against(&self, limit: &Resource) -> Option<Change> {
        matches!(limit.kind, ResourceKind::Lock | ResourceKind::SyncedWrites)
            .then(|| Change::new(self.kind(), &limit.name))
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        let is_section = match &finding.evidence {
            Evidence::LockWait(_) => true,
            // Whether requests could share a sync is not known.
            Evidence::DiskBound(disk) => disk.synced.is_some(),
            _ => false,
        };
        is_section.then(|| Change::new(self.kind(), &finding.resource))
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        self.made_instead(&change.target, before, after)
    }

    fn made_instead(&self, place: &str, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let sections = sections(place, before.scene).ok()?;
        let by_calls = || {
            let held_for = sections.iter().flat_map(|section| &section.held_for);
            held_for.filter_map(|wait| wait_factor(before, after, &wait.callee)).reduce(f64::max)
        };
        let factor = own_time_factor(before, after, place).or_else(by_calls)?;
        Some(Change { amount: Some(factor), ..Change::new(self.kind(), place) })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let held_s = held_s(&sections(&change.target, scene)?);
        let factor = change.amount.unwrap_or(FACTOR);
        let target = change.target.clone();
        let adjust = move |system: &mut System| shorten(system, &target, held_s, factor);
        Ok(Effect {
            cases: vec![Case::new(adjust)],
            assumptions: vec![Assumption::SectionShrinks { factor }],
            ..Effect::default()
        })
    }
}

/// A section holds the CPU of its service as far as that fits; the rest of it is delay.
fn shorten(system: &mut System, target: &str, held_s: f64, factor: f64) {
    let demand_s = system.program(target).map_or(0.0, |program| program.demand_s);
    let cpu_s = demand_s.min(held_s);
    let gone = 1.0 - 1.0 / factor;
    if demand_s > 0.0 {
        let sections = system.sections.clone();
        scale_all_cpu(system, target, 1.0 - gone * cpu_s / demand_s);
        system.sections = sections;
    }
    system.delay_s = (system.delay_s - gone * (held_s - cpu_s)).max(0.0);
    each_section(system, target, |section| {
        section.held_s /= factor;
        section.held_for.iter_mut().for_each(|wait| wait.request_s /= factor);
    });
}
