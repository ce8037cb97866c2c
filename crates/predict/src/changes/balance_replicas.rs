//! `balance-replicas=SERVICE`: requests are spread evenly over the replicas of a service that there are, of which one gets more
//! than its share.
//!
//! The fullest replica then gets as much less as its share is a multiple of the mean, and each other one as much as it.

use narrows_model::finding::evidence::hot_partition::PlaceKind;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, Resource, ResourceKind};

use super::sections::each_section;
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::system::System;

pub(crate) struct BalanceReplicas;

impl Method for BalanceReplicas {
    fn kind(&self) -> ChangeKind {
        ChangeKind::BalanceReplicas
    }

    fn usage(&self) -> &'static str {
        "SERVICE"
    }

    fn description(&self, change: &Change) -> String {
        format!("requests spread evenly over the replicas of {}", change.target)
    }

    fn against(&self, limit: &Resource) -> Option<Change> {
        (limit.kind == ResourceKind::FullestReplica).then(|| Change::new(self.kind(), &limit.name))
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        ratio(finding).map(|_| Change::new(self.kind(), &finding.resource))
    }

    fn made_in_requests(&self, change: &Change, _before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        (!after.suggests(change)).then(|| change.clone())
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let of_service = scene.diagnosed.findings.iter().filter(|finding| finding.resource == change.target);
        let Some(ratio) = of_service.filter_map(ratio).next() else {
            return Err(scene.unknown(change, Vec::new()));
        };
        let service = change.target.clone();
        let adjust = move |system: &mut System| {
            each_section(system, &service, |section| section.share /= ratio);
            let meant = system.programs.iter_mut().filter(|program| program.service == service);
            meant.for_each(|program| program.fullest_share = None);
        };
        Ok(Effect { cases: vec![Case::new(adjust)], assumptions: vec![Assumption::EvenReplicas], ..Effect::default() })
    }
}

/// Share of the fullest replica as a multiple of the mean; `None` if a finding is about something else.
fn ratio(finding: &Finding) -> Option<f64> {
    match &finding.evidence {
        Evidence::HotPartition(hot) if matches!(hot.kind, PlaceKind::Replica | PlaceKind::Server) => Some(hot.ratio),
        Evidence::UnevenAssignment(uneven) if uneven.idle_by_count < 1.0 => Some(1.0 / (1.0 - uneven.idle_by_count)),
        _ => None,
    }
}
