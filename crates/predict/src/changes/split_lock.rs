//! `split-lock=SERVICE`: requests no longer take turns: there is a lock for each thing that is changed, or none.
//!
//! The work of a turn takes as long, with as much CPU, beside that of others.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, Resource, ResourceKind};

use super::sections::{held_s, is_gone, remove_sections, sections};
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::system::System;

pub(crate) struct SplitLock;

impl Method for SplitLock {
    fn kind(&self) -> ChangeKind {
        ChangeKind::SplitLock
    }

    fn usage(&self) -> &'static str {
        "SERVICE"
    }

    fn description(&self, change: &Change) -> String {
        format!("not taking turns in {}", change.target)
    }

    fn against(&self, limit: &Resource) -> Option<Change> {
        (limit.kind == ResourceKind::OneAtATime).then(|| Change::new(self.kind(), &limit.name))
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::SerialisedSection(_) => Some(Change::new(self.kind(), &finding.resource)),
            _ => None,
        }
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        is_gone(change, before, after).then(|| change.clone())
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let held_ns = held_s(&sections(&change.target, scene)?) * 1e9;
        let target = change.target.clone();
        let adjust = move |system: &mut System| remove_sections(system, &target);
        Ok(Effect {
            cases: vec![Case::new(adjust)],
            assumptions: vec![Assumption::SectionTakesAsLong { held_ns }],
            ..Effect::default()
        })
    }
}
