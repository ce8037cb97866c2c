//! `add-replicas=SERVICE[,REPLICAS]`: a service runs as so many processes; as twice as many without a number.
//!
//! Each has the limit of CPU that one has now, or its one thread. They share the machine as before.

use narrows_model::prediction::{Assumption, Change, ChangeKind};

use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::system::System;

pub(crate) struct AddReplicas;

impl Method for AddReplicas {
    fn kind(&self) -> ChangeKind {
        ChangeKind::AddReplicas
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,REPLICAS]"
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let Some(program) = scene.system.program(&change.target) else {
            return Err(scene.unknown(change, scene.system.programs.iter().map(|one| one.service.clone()).collect()));
        };
        let replicas = change.amount.map_or(program.replicas * 2, |amount| amount.round().max(1.0) as u32);
        let service = program.service.clone();
        let adjust = move |system: &mut System| {
            let meant = system.programs.iter_mut().filter(|program| program.service == service);
            meant.for_each(|program| program.replicas = replicas);
        };
        Ok(Effect { cases: vec![Case::new(adjust)], assumptions: vec![Assumption::EvenReplicas], ..Effect::default() })
    }
}
