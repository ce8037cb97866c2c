//! `remove-sidecar[=SERVICE]`: the proxies beside a service are gone; beside all services without one.
//!
//! None of their CPU is needed, and in each trace their spans take no time of their own. Sidecars that send no spans are part of
//! the calls that pass them: each adds one hop to a call, and all hops of a call take equally long.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind};
use narrows_model::run::sidecar_of;

use super::{Case, Effect, Method, Scene, Target};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::retime::{SampledTrace, Treatment};
use crate::rules::{Part, share_of};
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

    fn part(&self, change: &Change, scene: &Scene<'_>) -> Option<Part> {
        let gone = gone(change, scene);
        let hop_ns = hop_ns(&gone, scene);
        let share = share_of(scene, &|traced| without(traced, &gone, hop_ns, scene))?;
        Some(Part { share, factor: f64::INFINITY })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let gone = gone(change, scene);
        if gone.is_empty() {
            let services = scene.system.programs.iter().map(|program| program.service.as_str());
            return Err(scene.unknown(change, services.filter_map(sidecar_of).map(str::to_owned).collect()));
        }
        let hop_ns = hop_ns(&gone, scene);
        let entry_ns = entry_ns(&gone, hop_ns, scene);
        let removed = gone.clone();
        let edit = move |traced: &SampledTrace<'_>, _: &[f64]| without(traced, &removed, hop_ns, scene);
        let adjust = move |system: &mut System| gone.iter().for_each(|name| system.remove(name));
        let mut case = Case::with_edit(adjust, edit, scene.sample);
        for request in &mut case.retimed {
            request.new_ns = (request.new_ns - entry_ns).max(0.0);
        }
        Ok(Effect { cases: vec![case], assumptions: vec![Assumption::SidecarsOnly], ..Effect::default() })
    }
}

/// Names of the sidecars that a change removes.
fn gone(change: &Change, scene: &Scene<'_>) -> Vec<String> {
    let is_meant = |service: &str| change.target.is_empty() || service == change.target;
    let services = scene.system.programs.iter().map(|program| program.service.as_str());
    services.filter(|name| sidecar_of(name).is_some_and(is_meant)).map(str::to_owned).collect()
}

/// Treatment of the spans of a trace without these sidecars.
fn without(traced: &SampledTrace<'_>, gone: &[String], hop_ns: f64, scene: &Scene<'_>) -> Vec<Treatment> {
    let mut treatments = traced.untreated();
    for at in &traced.tree.order {
        treatments[*at].own = own_share_left(traced, *at, gone, hop_ns, scene);
    }
    treatments
}

/// Share that is left of the own time of a span.
fn own_share_left(traced: &SampledTrace<'_>, at: usize, gone: &[String], hop_ns: f64, scene: &Scene<'_>) -> f64 {
    let is_gone = |name: &str| gone.iter().any(|one| one == name);
    if is_gone(&traced.tree.span(at).service) {
        return 0.0;
    }
    let hidden = scene.sample.names.hidden_sidecars(&traced.tree, at);
    let fewer = hidden.iter().filter(|name| is_gone(name)).count() as f64;
    let hops_left = 1.0 - fewer / (1 + hidden.len()) as f64;
    if fewer == 0.0 || scene.sample.names.is_way(&traced.tree, at) {
        return hops_left;
    }
    // The rest is the callee's.
    (1.0 - fewer * hop_ns / traced.own_ns(at)).max(hops_left)
}

/// Time of a request from one process to the next, through sidecars that send no spans, without waits, nanoseconds: the mean of the
/// calls that show nothing else, and at least the CPU of the sidecar.
fn hop_ns(gone: &[String], scene: &Scene<'_>) -> f64 {
    let (mut own_ns, mut hops) = (0.0, 0.0);
    for traced in &scene.sample.traces {
        for at in &traced.tree.order {
            let hidden = scene.sample.names.hidden_sidecars(&traced.tree, *at).len();
            if hidden > 0 && scene.sample.names.is_way(&traced.tree, *at) {
                own_ns += traced.weight * traced.own_ns(*at);
                hops += traced.weight * (1 + hidden) as f64;
            }
        }
    }
    let cpu_s: f64 = gone.iter().filter_map(|name| scene.system.program(name)).map(|program| program.demand_s).sum();
    let passes: f64 = gone.iter().filter_map(|name| sidecar_of(name)).map(|service| scene.passes(service)).sum();
    let pass_ns = if passes > 0.0 { cpu_s / passes * 1e9 } else { 0.0 };
    if hops > 0.0 { pass_ns.max(own_ns / hops) } else { pass_ns }
}

/// Time that requests save before their traces begin, nanoseconds: a hop, at most half of the time that passes there.
fn entry_ns(gone: &[String], hop_ns: f64, scene: &Scene<'_>) -> f64 {
    let names = &scene.sample.names;
    let is_gone = |traced: &SampledTrace<'_>| {
        names.hidden_entry(&traced.tree).is_some_and(|sidecar| gone.iter().any(|name| name == sidecar))
    };
    let Some(traced_ns) = scene.sample.mean_ns().filter(|_| scene.sample.traces.iter().all(is_gone)) else {
        return 0.0;
    };
    let levels = &scene.system.levels;
    let requests: f64 = levels.iter().map(|level| level.requests as f64).sum();
    let all_s: f64 = levels.iter().map(|level| level.requests as f64 * level.mean_s()).sum();
    hop_ns.min((all_s / requests * 1e9 - traced_ns).max(0.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{client, query, server};
    use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

    use crate::{DiagnosedTrial, predict, read_change};

    #[test]
    fn a_sidecar_that_sends_no_spans_takes_its_hops_with_it() {
        let stock = server("stock", "GET /stock").at(4.0, 2.0);
        let call = client("GET").at(2.0, 6.0).child(stock);
        let select = query("SELECT 1").to_port(FIRST_PORT).at(9.0, 6.0);
        let trace = server("shop", "GET /").at(0.0, 20.0).children([call, select]).trace(1);
        let services = ["db", "stock", "shop", "db.sidecar", "stock.sidecar", "shop.sidecar"];
        let trial =
            TrialBuilder::new("envoy").steady(10, Load { vus: 1, rate: 45.0, latency_ms: 22.0 }).traces([trace]);
        let one = |trial: TrialBuilder, service: &&str| trial.service(service, None).cpu(service, 0, |_| 0.01);
        let trial = services.iter().fold(trial, one).build();
        let mean_ms = |change: &str| {
            let changes = [read_change(change).expect("a change")];
            let prediction = predict(&DiagnosedTrial::new(&trial, &[]), &changes).expect("a prediction").predictions;
            prediction[0].after.mean_ns.value / 1e6
        };
        // The call spends 4 ms in three hops. The query is longer by as many; the rest of it is the database's. Half of the 2 ms
        // before the trace begins is a hop.
        let hop_ms = 4.0 / 3.0;
        let (all, of_shop) = (mean_ms("remove-sidecar"), mean_ms("remove-sidecar=shop"));
        assert!((all - (22.0 - 4.0 * hop_ms - 1.0)).abs() < 0.1, "{all}");
        assert!((of_shop - (22.0 - 2.0 * hop_ms - 1.0)).abs() < 0.1, "{of_shop}");
    }
}
