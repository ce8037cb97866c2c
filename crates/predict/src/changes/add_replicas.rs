//! `add-replicas=SERVICE[,REPLICAS]`: a service runs as so many processes; as twice as many without a number.
//!
//! Each has the limit of CPU that one has now, or its one thread. They share the machine as before. Requests are spread evenly,
//! or as whole partitions are if the replicas report how many they have. Each has its own cache, if the service has one
//! (`replica_caches.rs`).

use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, Resource, ResourceKind};
use narrows_model::units;

use super::replica_caches::Caches;
use super::spread_database::{is_database, more_replicas};
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::rules::{Part, own_share};
use crate::suggest::cpu_limit;
use crate::system::System;

pub(crate) struct AddReplicas;

impl Method for AddReplicas {
    fn kind(&self) -> ChangeKind {
        ChangeKind::AddReplicas
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,REPLICAS]"
    }

    fn description(&self, change: &Change) -> String {
        match change.amount {
            Some(replicas) => format!("{} replicas of {}", units::number(replicas), change.target),
            None => format!("twice the replicas of {}", change.target),
        }
    }

    fn against(&self, limit: &Resource) -> Option<Change> {
        matches!(limit.kind, ResourceKind::Thread | ResourceKind::OneCore)
            .then(|| Change::new(self.kind(), &limit.name))
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        let is_one_thread = match &finding.evidence {
            Evidence::InterpreterLock(_) => true,
            Evidence::EventLoopLag(lag) => !lag.is_waiting(),
            _ => cpu_limit(finding)? == CpuLimit::Thread,
        };
        is_one_thread.then(|| Change::new(self.kind(), &finding.resource))
    }

    fn made_in_services(&self, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Vec<Change> {
        let more = more_replicas(before, after).filter(|(service, _)| !is_database(service, before.scene));
        more.map(|(service, replicas)| Change { amount: Some(replicas), ..Change::new(self.kind(), service) }).collect()
    }

    fn part(&self, change: &Change, scene: &Scene<'_>) -> Option<Part> {
        let replicas = f64::from(scene.system.program(&change.target)?.replicas);
        let share = own_share(scene, |name| name == change.target)?;
        Some(Part { share, factor: change.amount.unwrap_or(2.0) / replicas })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let Some(program) = scene.system.program(&change.target) else {
            return Err(scene.unknown(change, scene.system.programs.iter().map(|one| one.service.clone()).collect()));
        };
        let replicas = change.amount.map_or(program.replicas * 2, |amount| amount.round().max(1.0) as u32);
        let service = program.service.clone();
        let growth = f64::from(replicas) / f64::from(program.replicas);
        let caches = Caches::of(&service, scene);
        let mut assumptions = vec![match program.partitions {
            Some(partitions) => Assumption::WholePartitions { partitions, replicas },
            None => Assumption::EvenReplicas,
        }];
        assumptions.extend(caches.as_ref().map(|caches| Assumption::CacheOfEachReplica {
            misses: caches.misses,
            misses_after: caches.misses_with(1.0 / growth),
        }));
        let adjust = move |system: &mut System| {
            let meant = system.programs.iter_mut().filter(|program| program.service == service);
            for program in meant {
                program.spread_over(replicas);
                system.fixed_cores += program.fixed_cores * (growth - 1.0);
                program.fixed_cores *= growth;
            }
            caches.iter().for_each(|caches| caches.spread(system, growth));
        };
        Ok(Effect { cases: vec![Case::new(adjust)], assumptions, ..Effect::default() })
    }
}
