//! CPU and memory as evidence besides latency: a service that needs several times as much does other work than before,
//! whether requests wait for it or not.

use narrows_model::diff::{ServiceDiff, ServiceRole};
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Confidence;
use narrows_model::series::names;

/// Times as much CPU for each request.
const CPU_TIMES: f64 = 2.0;
/// Times as much CPU at all: what a service uses while it idles counts for each request too, and there for more the fewer
/// requests there are.
const CORES_TIMES: f64 = 1.5;
/// Additional cores.
const CORES_MIN: f64 = 0.01;
/// Times as much memory.
const MEMORY_TIMES: f64 = 2.0;
/// Additional bytes.
const MEMORY_MIN: f64 = 64e6;

/// Puts the memory of a service to it, and names it if it uses notably more CPU or memory than before and nothing else is
/// known.
pub(super) fn judge(service: &mut ServiceDiff, before: &[&TrialEvidence], after: &[&TrialEvidence]) {
    let cores = usage(before, names::CPU_CORES, &service.service).zip(usage(after, names::CPU_CORES, &service.service));
    let cpu_grew = service.cpu.zip(cores).is_some_and(|((old, new), (was, is))| {
        new >= CPU_TIMES * old && is >= CORES_TIMES * was && is - was >= CORES_MIN
    });
    if cpu_grew {
        name(service);
    }
    judge_memory(service, before, after);
}

/// Share of a machine's processors that a service uses in addition; 0 where either is unknown.
pub(super) fn machine_share(service: &str, before: &[&TrialEvidence], after: &[&TrialEvidence]) -> f64 {
    let cores = |side| usage(side, names::CPU_CORES, service);
    let all = after.iter().map(|trial| trial.cores).max().unwrap_or(0);
    match (cores(before), cores(after)) {
        (Some(old), Some(new)) if all > 0 => ((new - old) / f64::from(all)).clamp(0.0, 1.0),
        _ => 0.0,
    }
}

/// Puts the memory of a service to it, and names it if it uses notably more than before.
pub(super) fn judge_memory(service: &mut ServiceDiff, before: &[&TrialEvidence], after: &[&TrialEvidence]) {
    let of = |side| usage(side, names::MEMORY_BYTES, &service.service);
    service.memory = of(before).zip(of(after));
    if service.memory.is_some_and(|(old, new)| new >= MEMORY_TIMES * old && new - old >= MEMORY_MIN) {
        name(service);
    }
}

fn name(service: &mut ServiceDiff) {
    if matches!(service.role, ServiceRole::Unchanged | ServiceRole::Waiting) {
        (service.role, service.confidence) = (ServiceRole::Heavier, Confidence::Medium);
    }
}

/// Mean over the trials of a quantity of all replicas together; `None` if it was not sampled.
fn usage(trials: &[&TrialEvidence], name: &str, service: &str) -> Option<f64> {
    let usages = trials.iter().map(|trial| trial.counted_usage(name, service)).filter(|usage| usage.points > 0);
    let means: Vec<f64> = usages.map(|usage| usage.mean).collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}
