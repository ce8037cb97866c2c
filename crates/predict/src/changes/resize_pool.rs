//! `resize-pool=SERVICE[,CONNECTIONS]`: a pool has so many connections; twice as many without a number.
//!
//! Only the wait for a connection changes: more queries at a time use the database's CPU as before, and its limit stays.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, Resource, ResourceKind};
use narrows_model::units;

use super::raise_limit::under_way;
use super::sections::is_gone;
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::{GROWTH_MIN, ReadTrial};
use crate::system::{Section, System};

pub(crate) struct ResizePool;

impl Method for ResizePool {
    fn kind(&self) -> ChangeKind {
        ChangeKind::ResizePool
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,CONNECTIONS]"
    }

    fn description(&self, change: &Change) -> String {
        match change.amount {
            Some(connections) => {
                format!("a pool of {} connections in {}", units::number(connections), change.target)
            }
            None => format!("twice the connections in the pool of {}", change.target),
        }
    }

    fn against(&self, limit: &Resource) -> Option<Change> {
        (limit.kind == ResourceKind::Connections).then(|| Change::new(self.kind(), &limit.name))
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::PoolWait(wait) if !wait.is_of_calls_at_once() => {
                Some(Change::new(self.kind(), &finding.resource))
            }
            _ => None,
        }
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let by_count = || self.made_instead(&change.target, before, after);
        // A pool whose connections nothing counts is large enough if no request waits for one.
        let by_waits = || Change { amount: Some(under_way(&after.scene.system.levels)), ..change.clone() };
        by_count().or_else(|| is_gone(change, before, after).then(by_waits))
    }

    fn made_instead(&self, place: &str, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let connections = grown_connections(place, before, after)?;
        Some(Change { amount: Some(connections), ..Change::new(self.kind(), place) })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let pools = || scene.system.sections.iter().filter(|section| is_pool(section));
        let Some(pool) = pools().find(|pool| pool.name == change.target) else {
            return Err(scene.unknown(change, pools().map(|pool| pool.name.clone()).collect()));
        };
        let places = change.amount.map_or(pool.places * 2, |amount| amount.round().max(1.0) as u32);
        let service = pool.name.clone();
        let adjust = move |system: &mut System| {
            let meant = system.sections.iter_mut().filter(|section| is_pool(section) && section.name == service);
            meant.for_each(|pool| pool.places = places);
        };
        Ok(Effect {
            cases: vec![Case::new(adjust)],
            assumptions: vec![Assumption::ConnectionsHeldAsLong],
            ..Effect::default()
        })
    }
}

/// Most connections of a service to the peer of its pool in a later trial, if they are more than the pool had.
pub(super) fn grown_connections(service: &str, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<f64> {
    let of_service = before.scene.diagnosed.findings.iter().filter(|finding| finding.resource == service);
    let pool = of_service.filter_map(|finding| match &finding.evidence {
        Evidence::PoolWait(wait) => wait.sockets.as_ref(),
        _ => None,
    });
    let pool = pool.into_iter().next()?;
    let calls = after.scene.diagnosed.calls?;
    let edges = calls.from(service).filter(|edge| edge.callee == pool.peer);
    let connections = edges.flat_map(|edge| &edge.levels).map(|level| level.all.connections).fold(0.0, f64::max);
    (connections >= GROWTH_MIN * pool.connections).then_some(connections)
}

fn is_pool(section: &Section) -> bool {
    section.kind == ResourceKind::Connections
}
