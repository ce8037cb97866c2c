//! `reuse-connections=SERVICE[,FACTOR]`: a service keeps its connections for further calls, so that none is opened for a call.
//! With a factor, a request needs so many times less CPU at both ends together.
//!
//! Without a factor the CPU of opening and closing a connection is the one that the finding assumes. The wait for connections
//! to be opened is gone as far as sockets show it.

use narrows_model::finding::evidence::connection_churn::ConnectionChurn;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind};

use super::waits::shrink;
use super::{Case, Effect, Method, Scene, scale_all_cpu};
use crate::Cannot;
use crate::call_waits::calls;
use crate::recognition::{ReadTrial, cpu_factor};
use crate::system::{System, Wait, WaitCause};

/// Share of the connections opened for a request that is left at most when they are kept.
const OPENED_LEFT_MAX: f64 = 0.5;

pub(crate) struct ReuseConnections;

impl Method for ReuseConnections {
    fn kind(&self) -> ChangeKind {
        ChangeKind::ReuseConnections
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,FACTOR]"
    }

    fn description(&self, change: &Change) -> String {
        format!("keeping the connections of {}", change.target)
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::ConnectionChurn(_) => Some(Change::new(self.kind(), &finding.resource)),
            _ => None,
        }
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let opened = |trial: &ReadTrial<'_>| {
            calls(trial.scene.diagnosed, Some(&change.target), None).map(|all| all.opened_each())
        };
        let is_made = opened(after)? <= OPENED_LEFT_MAX * opened(before)? && !after.has_new_fault(before);
        let churn = churn(&change.target, before.scene);
        let is_end = |service: &str| churn.is_some_and(|churn| churn.ends.iter().any(|end| end.service == service));
        is_made.then(|| Change { amount: cpu_factor(before, after, is_end), ..change.clone() })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let Some(churn) = churn(&change.target, scene) else {
            return Err(Cannot::NoWait { place: change.target.clone(), reason: "connections".to_owned() });
        };
        let left_of_end: Vec<(String, f64)> = churn
            .ends
            .iter()
            .map(|end| {
                let assumed = 1.0 - if end.cores > 0.0 { (end.connection_cores / end.cores).min(1.0) } else { 0.0 };
                (end.service.clone(), change.amount.map_or(assumed, |factor| 1.0 / factor))
            })
            .collect();
        let demand_s = |service: &str| scene.system.program(service).map_or(0.0, |program| program.demand_s);
        let cpu_s: f64 = left_of_end.iter().map(|(service, left)| (1.0 - left) * demand_s(service)).sum();
        let service = change.target.clone();
        let is_meant = move |wait: &Wait| wait.cause == WaitCause::Connect && wait.service == service;
        let adjust = move |system: &mut System| {
            shrink(system, &is_meant, 0.0, 0.0);
            left_of_end.iter().for_each(|(service, left)| scale_all_cpu(system, service, *left));
        };
        Ok(Effect {
            cases: vec![Case::new(adjust)],
            assumptions: vec![Assumption::ConnectionCost { cpu_ns: cpu_s * 1e9 }],
            ..Effect::default()
        })
    }
}

fn churn<'s>(service: &str, scene: &'s Scene<'s>) -> Option<&'s ConnectionChurn> {
    let of_service = scene.diagnosed.findings.iter().filter(|finding: &&Finding| finding.resource == service);
    of_service
        .filter_map(|finding| match &finding.evidence {
            Evidence::ConnectionChurn(churn) => Some(churn),
            _ => None,
        })
        .next()
}
