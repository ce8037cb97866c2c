//! `raise-memory=SERVICE[,FACTOR]`: a service has enough memory: no request waits for memory or for pages that were dropped, and
//! its garbage collector rarely runs. With a factor, a request needs so many times less CPU.
//!
//! Without a factor only the CPU of pauses is known to be gone, one thread's; what collections use beside the program is not
//! reported. A request waits for a pause of length p with the chance that it arrives in one: λ·p²/2 for λ pauses per second
//! (residual life of a renewal process). A limit that nothing explains, of a service that reads pages again which were dropped,
//! is that of these reads.

use narrows_model::finding::evidence::garbage_collection::GarbageCollection;
use narrows_model::finding::evidence::memory_growth::MemoryGrowth;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, ResourceKind};

use super::{Case, Effect, Method, Scene, scale_all_cpu};
use crate::Cannot;
use crate::recognition::{ReadTrial, cpu_factor};
use crate::system::{Level, Section, System};

pub(crate) struct RaiseMemory;

impl Method for RaiseMemory {
    fn kind(&self) -> ChangeKind {
        ChangeKind::RaiseMemory
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,FACTOR]"
    }

    fn description(&self, change: &Change) -> String {
        format!("enough memory for {}", change.target)
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        let is_short = match &finding.evidence {
            Evidence::GarbageCollection(_) => true,
            Evidence::MemoryGrowth(growth) => growth.shortage.is_some(),
            _ => false,
        };
        is_short.then(|| Change::new(self.kind(), &finding.resource))
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let is_gone = !after.suggests(change);
        let factor = || cpu_factor(before, after, |service| service == change.target);
        is_gone.then(|| Change { amount: factor(), ..change.clone() })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let findings = scene.diagnosed.findings.iter().filter(|finding| finding.resource == change.target);
        let levels = &scene.system.levels;
        let Some(cost) = findings.filter_map(|finding| Cost::of(finding, levels)).next() else {
            return Err(Cannot::NoWait { place: change.target.clone(), reason: "memory".to_owned() });
        };
        let (service, left) = (change.target.clone(), change.amount.map_or(cost.cpu_left, |factor| 1.0 / factor));
        let Cost { wait_s, is_limit, .. } = cost;
        let adjust = move |system: &mut System| {
            let is_reads = |section: &Section| is_limit && section.kind == ResourceKind::Unexplained;
            let own_s = system.program(&service).map_or(0.0, |program| program.demand_s);
            let in_reads = |section: &Section| (section.held_s - own_s).max(0.0);
            let reads_s = system.sections.iter().filter(|one| is_reads(one)).map(in_reads).fold(0.0, f64::max);
            system.sections.retain(|section| !is_reads(section));
            scale_all_cpu(system, &service, left);
            system.delay_s = (system.delay_s - wait_s.max(reads_s)).max(0.0);
        };
        Ok(Effect {
            cases: vec![Case::new(adjust)],
            assumptions: vec![Assumption::WaitGone { reason: cost.reason.to_owned(), wait_ns: wait_s * 1e9 }],
            ..Effect::default()
        })
    }
}

/// Cost of too little memory.
struct Cost {
    reason: &'static str,
    /// Wait of a request, mean, seconds.
    wait_s: f64,
    /// Share of the service's CPU that is left without it, above 0.
    cpu_left: f64,
    /// Whether a limit that nothing explains comes from it.
    is_limit: bool,
}

impl Cost {
    fn of(finding: &Finding, levels: &[Level]) -> Option<Self> {
        match &finding.evidence {
            Evidence::GarbageCollection(collections) => Some(Self::of_collections(collections)),
            Evidence::MemoryGrowth(growth) => Self::of_shortage(growth, levels),
            _ => None,
        }
    }

    fn of_collections(collections: &GarbageCollection) -> Self {
        let pause_s = collections.pause_ns.unwrap_or(0.0) / 1e9;
        let cores = collections.cores.filter(|cores| *cores > 0.0);
        let collecting = collections.helper_cores.unwrap_or(collections.share);
        let cpu_left = cores.map_or(1.0, |cores| 1.0 - (collecting / cores).min(0.9));
        Self { reason: "collections of garbage", wait_s: collections.share * pause_s / 2.0, cpu_left, is_limit: false }
    }

    /// Tasks wait for memory in a share of the time: so many requests at any moment, and by Little's law so long each.
    fn of_shortage(growth: &MemoryGrowth, levels: &[Level]) -> Option<Self> {
        let shortage = growth.shortage?;
        let (seconds, requests) =
            levels.iter().fold((0.0, 0.0), |sum, level| (sum.0 + level.seconds, sum.1 + level.requests as f64));
        let wait_s = if requests > 0.0 { shortage.waiting * seconds / requests } else { 0.0 };
        Some(Self { reason: "memory", wait_s, cpu_left: 1.0, is_limit: shortage.read.is_some_and(|read| read > 0.0) })
    }
}
