//! `add-sidecar[=SERVICE],MICROSECONDS`: a proxy stands beside a service, or beside all without one, which needs so much CPU
//! each time a request passes it.
//!
//! The cost of a proxy is not in a run without it, so it has to be given; `narrows diff` of two variants, with and without,
//! measures it. A request passes the proxy of a service once on its way in, and once for each call that the service makes.

use narrows_model::prediction::{Assumption, Change, ChangeKind};
use narrows_model::run::sidecar_of;
use narrows_model::trace::SpanKind;

use super::{Case, Effect, Method, Scene, Target};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::system::{Program, System};

pub(crate) struct AddSidecar;

impl Method for AddSidecar {
    fn kind(&self) -> ChangeKind {
        ChangeKind::AddSidecar
    }

    fn usage(&self) -> &'static str {
        "[SERVICE],MICROSECONDS"
    }

    fn target(&self) -> Target {
        Target::OneOrAll
    }

    fn description(&self, change: &Change) -> String {
        match change.target.as_str() {
            "" => "a sidecar beside each service".to_owned(),
            service => format!("a sidecar beside {service}"),
        }
    }

    fn made_in_services(&self, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Vec<Change> {
        if before.services.sidecars > 0 || after.services.sidecars == 0 {
            return Vec::new();
        }
        // Additional cost of a request in each pass of a proxy, with the work of its caller to reach it, microseconds.
        let passes: f64 = before.services.replicas.keys().map(|service| before.scene.passes(service)).sum();
        let each = (after.scene.system.cpu_s() - before.scene.system.cpu_s()) / passes * 1e6;
        let is_known = each.is_finite() && each > 0.0;
        is_known.then(|| Change { amount: Some(each), ..Change::new(self.kind(), "") }).into_iter().collect()
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let pass_s = change.amount.ok_or(Cannot::NoAmount { change: change.kind })? / 1e6;
        scene.require_traces(self.kind())?;
        let is_meant =
            |service: &str| sidecar_of(service).is_none() && (change.target.is_empty() || service == change.target);
        let services = || scene.system.programs.iter().map(|program| program.service.as_str());
        let passed: Vec<(String, f64)> = services()
            .filter(|service| is_meant(service))
            .map(|service| (service.to_owned(), scene.passes(service)))
            .filter(|(_, passes)| *passes > 0.0)
            .collect();
        if passed.is_empty() {
            return Err(scene.unknown(change, services().map(str::to_owned).collect()));
        }
        let passes = passed.iter().map(|(_, passes)| passes).sum();
        let adjust = move |system: &mut System| {
            for (service, passes) in &passed {
                let replicas = system.program(service).map_or(1, |program| program.replicas);
                let demand_s = passes * pass_s;
                system.machine_s += demand_s;
                let service = format!("{service}.sidecar");
                system.programs.push(Program { service, demand_s, replicas, ..Program::default() });
            }
        };
        Ok(Effect {
            // A proxy's cost, as it is measured, includes the work of its callers under that load.
            cases: vec![Case { is_cpu_given: true, ..Case::new(adjust) }],
            assumptions: vec![Assumption::SidecarCost { pass_ns: pass_s * 1e9, passes }],
            ..Effect::default()
        })
    }
}

impl Scene<'_> {
    /// How often a request would pass a proxy beside a service: requests to it, and calls that it makes to others.
    pub(crate) fn passes(&self, service: &str) -> f64 {
        let (mut passes, mut requests) = (0.0, 0.0);
        for traced in &self.sample.traces {
            let tree = &traced.tree;
            let is_pass = |at: &&usize| {
                let span = tree.span(**at);
                span.service == service
                    && match span.kind {
                        SpanKind::Server => true,
                        SpanKind::Client => self.system.program(self.sample.names.callee(tree, **at)).is_some(),
                        _ => false,
                    }
            };
            passes += traced.weight * tree.order.iter().filter(is_pass).count() as f64;
            requests += traced.weight;
        }
        if requests > 0.0 { passes / requests } else { 0.0 }
    }
}
