//! `add-cpu=SERVICE[,FACTOR]`: a service's limit of CPU, or the machine's cores, are multiplied; doubled without a factor.

use narrows_model::finding::Finding;
use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::prediction::{Assumption, Change, ChangeKind, Doubt, Resource, ResourceKind};
use narrows_model::units;

use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::{ReadTrial, grown};
use crate::rules::{Part, own_share};
use crate::suggest::cpu_limit;
use crate::system::System;

/// Twice as much.
const FACTOR: f64 = 2.0;
/// The target that is no service.
pub(crate) const MACHINE: &str = "machine";

pub(crate) struct AddCpu;

impl Method for AddCpu {
    fn kind(&self) -> ChangeKind {
        ChangeKind::AddCpu
    }

    fn usage(&self) -> &'static str {
        "SERVICE|machine[,FACTOR]"
    }

    fn description(&self, change: &Change) -> String {
        format!("{} times the CPU for {}", units::number(change.amount.unwrap_or(FACTOR)), change.target)
    }

    fn against(&self, limit: &Resource) -> Option<Change> {
        (limit.kind == ResourceKind::Cpu).then(|| Change::new(self.kind(), &limit.name))
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        let target = match cpu_limit(finding)? {
            CpuLimit::Cap { .. } => &finding.resource,
            CpuLimit::Machine | CpuLimit::Host => MACHINE,
            CpuLimit::Thread | CpuLimit::OtherMachine { .. } => return None,
        };
        Some(Change::new(self.kind(), target))
    }

    fn made_in_services(&self, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Vec<Change> {
        grown(self.kind(), &before.services.cores, &after.services.cores)
    }

    fn part(&self, change: &Change, scene: &Scene<'_>) -> Option<Part> {
        let share = own_share(scene, |name| name == change.target)?;
        Some(Part { share, factor: change.amount.unwrap_or(FACTOR) })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let factor = change.amount.unwrap_or(FACTOR);
        if change.target == MACHINE {
            let adjust = move |system: &mut System| system.cores *= factor;
            return Ok(Effect { cases: vec![Case::new(adjust)], ..Effect::default() });
        }
        let Some(program) = scene.system.program(&change.target) else {
            let known = scene.system.programs.iter().map(|program| program.service.clone());
            return Err(scene.unknown(change, known.chain([MACHINE.to_owned()]).collect()));
        };
        if program.cap.is_none() && !program.is_one_thread {
            return Err(Cannot::NoLimit { service: program.service.clone() });
        }
        let is_by_thread = program.is_one_thread && program.cap.is_none_or(|cap| cap >= 1.0);
        let service = program.service.clone();
        let adjust = move |system: &mut System| {
            let meant = system.programs.iter_mut().filter(|program| program.service == service);
            meant.for_each(|program| program.cap = program.cap.map(|cap| cap * factor));
        };
        Ok(Effect {
            cases: vec![Case::new(adjust)],
            assumptions: vec![Assumption::CpuPerRequest],
            doubts: is_by_thread.then(|| Doubt::OneThread { service: program.service.clone() }).into_iter().collect(),
            ..Effect::default()
        })
    }
}
