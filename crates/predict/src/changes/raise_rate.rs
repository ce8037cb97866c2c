//! `raise-rate[=STORE[,FACTOR]]`: a store provides more request units, so that it refuses no call; without a factor, as many
//! as are needed.
//!
//! In each trace refused attempts are gone, and the waits after them. With a factor, the new rate is a limit of the store.

use narrows_model::prediction::{Assumption, Change, ChangeKind};

use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::retime::Traced;
use crate::system::System;

pub(crate) struct RaiseRate;

impl Method for RaiseRate {
    fn kind(&self) -> ChangeKind {
        ChangeKind::RaiseRate
    }

    fn usage(&self) -> &'static str {
        "STORE[,FACTOR]"
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let target = change.target.clone();
        let retimed = scene.retimed(self.kind(), &|traced: &Traced<'_>, _: &[f64]| traced.untreated())?;
        let is_store = |name: &str| target.is_empty() || name == target;
        let has_store = scene.system.stores.iter().any(|store| is_store(&store.name));
        let is_refused_at_all = retimed.iter().any(|one| one.old_refused_ns > 0.0);
        if !has_store && !scene.places().iter().any(|name| is_store(name)) {
            let stores = scene.system.stores.iter().map(|store| store.name.clone()).collect();
            return Err(scene.unknown(change, stores));
        }
        if !has_store && !is_refused_at_all {
            return Err(Cannot::NothingRefused { store: target });
        }
        let weight: f64 = retimed.iter().map(|one| one.weight).sum();
        let saved: f64 = retimed.iter().map(|one| one.old_refused_ns * one.weight).sum();
        let factor = change.amount;
        let adjust = move |system: &mut System| {
            for store in system.stores.iter_mut().filter(|store| target.is_empty() || store.name == target) {
                store.provisioned = store.provisioned.zip(factor).map(|(provisioned, factor)| provisioned * factor);
            }
        };
        let case = Case { ends_refusals: true, ..Case::new(adjust, retimed) };
        Ok(Effect {
            cases: vec![case],
            assumptions: vec![Assumption::NoRefusals { gained_ns: saved / weight }],
            ..Effect::default()
        })
    }
}
