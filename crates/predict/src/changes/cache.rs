//! `cache=CALLEE,HIT_RATE`: this share of the calls to a service, to a dependency, or with a span of this name is served
//! from the caller's memory.
//!
//! A hit takes no time and no CPU of the callee. Each call is a hit with the same chance, whatever it is for: nothing that a
//! run records says which values are read again.

use narrows_model::prediction::{Assumption, Change, ChangeKind};

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

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let hit_rate = change.amount.ok_or(Cannot::NoAmount { change: change.kind })?;
        let mut effect = unmade(change, hit_rate, scene)?;
        effect.assumptions.insert(0, Assumption::HitsAreIndependent { hit_rate });
        Ok(effect)
    }
}
