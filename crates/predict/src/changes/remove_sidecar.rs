//! `remove-sidecar[=SERVICE]`: the proxies beside a service are gone; beside all services without one.
//!
//! In each trace their spans take no time of their own, and none of their CPU is needed. Sidecars that send no spans are gone
//! from the CPU alone.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind};
use narrows_model::run::sidecar_of;

use super::{Case, Effect, Method, Scene, Target};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::retime::SampledTrace;
use crate::rules::{Part, own_share};
use crate::system::System;

pub(crate) struct RemoveSidecar;

impl Method for RemoveSidecar {
    fn kind(&self) -> ChangeKind {
        ChangeKind::RemoveSidecar
    }

    fn usage(&self) -> &'static str {
        "SERVICE"
    }

    fn target(&self) -> Target {
        Target::OneOrAll
    }

    fn description(&self, change: &Change) -> String {
        match change.target.as_str() {
            "" => "removing the sidecars".to_owned(),
            service => format!("removing the sidecars of {service}"),
        }
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::SidecarCost(_) => Some(Change::new(self.kind(), "")),
            _ => None,
        }
    }

    fn made_in_services(&self, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Vec<Change> {
        let is_made = before.services.sidecars > 0 && after.services.sidecars == 0;
        is_made.then(|| Change::new(self.kind(), "")).into_iter().collect()
    }

    fn part(&self, _change: &Change, scene: &Scene<'_>) -> Option<Part> {
        Some(Part { share: own_share(scene, |name| sidecar_of(name).is_some())?, factor: f64::INFINITY })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let target = change.target.clone();
        let is_gone =
            move |name: &str| sidecar_of(name).is_some_and(|service| target.is_empty() || service == target.as_str());
        let services = || scene.system.programs.iter().map(|program| program.service.as_str());
        let gone: Vec<String> = services().filter(|name| is_gone(name)).map(str::to_owned).collect();
        if gone.is_empty() {
            return Err(scene.unknown(change, services().filter_map(sidecar_of).map(str::to_owned).collect()));
        }
        let edit = move |traced: &SampledTrace<'_>, _: &[f64]| {
            let mut treatments = traced.untreated();
            for at in traced.tree.order.iter().filter(|at| is_gone(&traced.tree.span(**at).service)) {
                treatments[*at].own = 0.0;
            }
            treatments
        };
        let adjust = move |system: &mut System| gone.iter().for_each(|name| system.scale_cpu(name, 0.0));
        Ok(Effect {
            cases: vec![Case::with_edit(adjust, edit, scene.sample)],
            assumptions: vec![Assumption::SidecarsOnly],
            ..Effect::default()
        })
    }
}
