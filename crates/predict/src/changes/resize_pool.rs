//! `resize-pool=SERVICE[,CONNECTIONS]`: a pool has so many connections; twice as many without a number.
//!
//! Only the wait for a connection changes: more queries at a time use the database's CPU as before, and its limit stays.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, Resource, ResourceKind};
use narrows_model::units;

use super::{Case, Effect, Method, Scene};
use crate::Cannot;
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
            Evidence::PoolWait(wait) => wait.pool.size.map(|_| Change::new(self.kind(), &finding.resource)),
            _ => None,
        }
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

fn is_pool(section: &Section) -> bool {
    section.kind == ResourceKind::Connections
}
