//! `save-cpu=SERVICE[,FACTOR]`: a request needs a part of its CPU in a service, as with a cheaper algorithm or a result that is
//! kept; half without a factor.
//!
//! Waits of a request in the service stay, which `speed-up` shortens too. A later trial shows the factor by the CPU of a
//! request.

use narrows_model::prediction::{Assumption, Change, ChangeKind};
use narrows_model::units;

use super::sections::sections;
use super::{Case, Effect, Method, Scene, scale_all_cpu};
use crate::Cannot;
use crate::recognition::{ReadTrial, cpu_factor};
use crate::system::System;

/// Half the CPU.
const FACTOR: f64 = 2.0;

pub(crate) struct SaveCpu;

impl Method for SaveCpu {
    fn kind(&self) -> ChangeKind {
        ChangeKind::SaveCpu
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,FACTOR]"
    }

    fn description(&self, change: &Change) -> String {
        format!("{} times less CPU of a request in {}", units::number(change.amount.unwrap_or(FACTOR)), change.target)
    }

    fn made_instead(&self, place: &str, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        // A section has its own change, which shortens the turns too.
        let has_section = sections(place, before.scene).is_ok();
        let factor = cpu_factor(before, after, |service| service == place).filter(|_| !has_section)?;
        Some(Change { amount: Some(factor), ..Change::new(self.kind(), place) })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let Some(program) = scene.system.program(&change.target) else {
            return Err(scene.unknown(change, scene.system.programs.iter().map(|one| one.service.clone()).collect()));
        };
        let factor = change.amount.unwrap_or(FACTOR);
        let service = program.service.clone();
        let adjust = move |system: &mut System| scale_all_cpu(system, &service, 1.0 / factor);
        Ok(Effect {
            cases: vec![Case::new(adjust)],
            assumptions: vec![Assumption::CpuShrinks { factor }],
            ..Effect::default()
        })
    }
}
