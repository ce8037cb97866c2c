//! `cache=CALLEE,HIT_RATE`: this share of the calls to a service, to a dependency, or with a span of this name is served
//! from the caller's memory.
//!
//! A hit takes no time and no CPU of the callee. Each call is a hit with the same chance, whatever it is for: nothing that a
//! run records says which values are read again.

use narrows_model::prediction::{Assumption, Change, ChangeKind};
use narrows_model::units;

use super::unmade::unmade;
use super::{Effect, Method, Scene};
use crate::Cannot;

pub(crate) struct Cache;

impl Method for Cache {
    fn kind(&self) -> ChangeKind {
        ChangeKind::Cache
    }

    fn usage(&self) -> &'static str {
        "CALLEE,HIT_RATE"
    }

    fn amount_max(&self) -> Option<f64> {
        Some(1.0)
    }

    fn description(&self, change: &Change) -> String {
        let hits = units::percent(change.amount.unwrap_or(0.0));
        format!("a cache before {}, which {hits} of the calls hit", change.target)
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let hit_rate = change.amount.ok_or(Cannot::NoAmount { change: change.kind })?;
        let mut effect = unmade(change, hit_rate, scene)?;
        effect.assumptions.insert(0, Assumption::HitsAreIndependent { hit_rate });
        Ok(effect)
    }
}
