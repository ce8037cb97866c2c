//! Order of the services: the likeliest cause first.

use narrows_model::diff::{ServiceDiff, ServiceRole};

/// Causes whose effects differ by less than this share are ranked by what else speaks against them.
const SIGN_SHARE: f64 = 0.1;
/// Times as much CPU for each request that speaks against a service.
const CPU_GROWTH: f64 = 1.25;
/// Share of a machine's processors from which requests of all services there wait notably longer for one.
const MACHINE_SHARE_MIN: f64 = 0.25;

/// By what services are ranked: causes first, by the share of requests that fail because of it or of the latency that it
/// adds, for more the more it differs from what it was, and of two that are nearly equal the one that other evidence
/// speaks against too; then those that make or receive other calls, that use more, that became faster, those with new kinds of error
/// messages, then victims, then the rest. One that uses a good part of its machine in addition, `machine_share` from 0 to 1, is
/// among the causes: it slows others down.
pub(super) fn weight_of(service: &ServiceDiff, machine_share: f64) -> f64 {
    let failed = service.errors.1 - service.errors.0;
    let uses_more = service.cpu.is_some_and(|(before, after)| after >= CPU_GROWTH * before && after > 0.0);
    let signs = [uses_more, !service.logs.is_empty()].into_iter().filter(|speaks| *speaks).count();
    let share = service.latency_share.abs().min(1.0);
    match service.role {
        ServiceRole::Failing | ServiceRole::Slower => {
            let effect = (failed * novelty(service.errors)).max(service.latency_share * novelty_of_time(service));
            20.0 + effect * (1.0 + SIGN_SHARE * signs as f64)
        }
        ServiceRole::Calling | ServiceRole::Called => 16.0 + share,
        ServiceRole::Heavier => {
            let [cpu, memory] = [service.cpu, service.memory].map(|usage| novelty(usage.unwrap_or_default()));
            if machine_share >= MACHINE_SHARE_MIN { 20.0 + cpu * machine_share } else { 12.0 + cpu.max(memory) }
        }
        ServiceRole::Faster => 8.0 + share,
        ServiceRole::Unchanged if !service.logs.is_empty() => 4.0 + share,
        ServiceRole::Waiting => 2.0 + share,
        ServiceRole::Unchanged => share,
    }
}

/// Share of what is after that was not there before, 0 to 1.
fn novelty(sides: (f64, f64)) -> f64 {
    if sides.1 > 0.0 { (1.0 - sides.0 / sides.1).clamp(0.0, 1.0) } else { 0.0 }
}

/// The same of a service's own time in each call, of the calls that it makes, or of the wait in front of it.
fn novelty_of_time(service: &ServiceDiff) -> f64 {
    let of_calls = service.calls.as_ref().map(|(_, before, after)| novelty((*before, *after)));
    let outside = service.outside_ns.map_or(0.0, novelty);
    of_calls.unwrap_or(0.0).max(outside).max(novelty(service.call_ns.unwrap_or((service.before_ns, service.after_ns))))
}

#[cfg(test)]
mod tests {
    use narrows_model::diff::{Fate, LogDiff};

    use super::*;

    fn slower(latency_share: f64) -> ServiceDiff {
        let mut service = ServiceDiff::unchanged("payment");
        (service.role, service.latency_share) = (ServiceRole::Slower, latency_share);
        (service.before_ns, service.after_ns) = (1e6, 3e6);
        service
    }

    #[test]
    fn other_signs_settle_which_of_two_nearly_equal_causes_comes_first() {
        let message = LogDiff {
            template: "queue is full".into(),
            is_error: true,
            fate: Fate::Appeared,
            before: 0,
            after: 40,
            growth: None,
            calls: None,
            operation: None,
        };
        let logging = |latency_share| ServiceDiff { logs: vec![message.clone()], ..slower(latency_share) };
        let computing = |latency_share| ServiceDiff { cpu: Some((2e6, 3e6)), ..slower(latency_share) };
        assert!(weight_of(&logging(0.29), 0.0) > weight_of(&slower(0.30), 0.0));
        assert!(weight_of(&computing(0.29), 0.0) > weight_of(&slower(0.30), 0.0));
        assert!(
            weight_of(&logging(0.2), 0.0) < weight_of(&slower(0.30), 0.0),
            "they do not make up for a clear difference"
        );
        let unchanged = ServiceDiff { role: ServiceRole::Unchanged, ..logging(0.0) };
        assert!(weight_of(&unchanged, 0.0) < weight_of(&slower(0.05), 0.0), "they are no cause alone");
        let waiting = ServiceDiff { role: ServiceRole::Waiting, ..slower(0.4) };
        assert!(weight_of(&unchanged, 0.0) > weight_of(&waiting, 0.0), "but they are evidence");
    }

    #[test]
    fn of_two_causes_the_one_that_differs_more_from_what_it_was_comes_first() {
        let a_little = ServiceDiff { before_ns: 50e6, after_ns: 60e6, ..slower(0.2) };
        let tenfold = ServiceDiff { before_ns: 1e6, after_ns: 10e6, ..slower(0.18) };
        assert!(weight_of(&tenfold, 0.0) > weight_of(&a_little, 0.0));
    }

    #[test]
    fn a_service_that_takes_the_machine_comes_before_those_that_it_slows_down() {
        let heavier = |machine_share| {
            let service = ServiceDiff { role: ServiceRole::Heavier, cpu: Some((5e6, 40e6)), ..slower(0.0) };
            weight_of(&service, machine_share)
        };
        let slowed = ServiceDiff { before_ns: 13e6, after_ns: 17e6, ..slower(0.6) };
        assert!(heavier(0.4) > weight_of(&slowed, 0.0));
        assert!(heavier(0.02) < weight_of(&slowed, 0.0));
        assert!(heavier(0.4) < weight_of(&slower(0.9), 0.0), "three times as slow is no consequence");
    }
}
