//! Parts of a request's time outside queues whose cause is known.

use narrows_model::call_graph::{CallEdge, CallGraph, NAME_SERVER, NodeKind};
use narrows_model::finding::evidence::dns::DnsSign;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::limit::Limit;

use super::Level;
use crate::DiagnosedTrial;

/// A shorter wait, as a share of the latency alone, is left out.
const NOTABLE_SHARE: f64 = 0.01;
/// From this share of the latency on, look-ups that sockets show stand for all that nothing else explains.
const LOOKUPS_SHARE_MIN: f64 = 0.25;

/// Part of a request's delay, or of the time that a section is held, whose cause is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wait {
    pub(crate) cause: WaitCause,
    /// The service that waits.
    pub(crate) service: String,
    /// The callee or store that it waits for; empty where the cause has no name.
    pub(crate) callee: String,
    /// Mean over all requests, seconds, above 0.
    pub(crate) request_s: f64,
}

/// Cause of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitCause {
    /// A name server's response.
    Names,
    /// A callee's response.
    Callee,
    /// Connections being opened.
    Connect,
    /// Times without any response.
    Stall,
}

/// The waits that findings and sockets show, each caller and callee once.
pub(super) fn waits(diagnosed: &DiagnosedTrial<'_>, levels: &[Level]) -> Vec<Wait> {
    let alone_s = levels.first().map_or(0.0, Level::mean_s);
    let calls = diagnosed.limit.zip(diagnosed.calls).map_or_else(Vec::new, |(limit, calls)| of_calls(limit, calls));
    let findings = diagnosed.findings.iter();
    let mut waits: Vec<Wait> = findings.filter_map(|finding| of_finding(finding, levels, &calls)).collect();
    for call in calls {
        if !waits.iter().any(|known| (&known.service, &known.callee) == (&call.service, &call.callee)) {
            waits.push(call);
        }
    }
    waits.retain(|wait| wait.request_s > NOTABLE_SHARE * alone_s);
    waits
}

fn of_finding(finding: &Finding, levels: &[Level], calls: &[Wait]) -> Option<Wait> {
    let wait = |cause, service: &str, callee: &str, request_s: f64| Wait {
        cause,
        service: service.to_owned(),
        callee: callee.to_owned(),
        request_s,
    };
    let resource = finding.resource.as_str();
    match &finding.evidence {
        Evidence::Dns(dns) => {
            let alone_s = levels.first()?.mean_s();
            let seen_s = dns.request_ns / 1e9;
            // Sockets of look-ups are open so briefly that samples miss many.
            let is_part = dns.sign == DnsSign::Sockets && seen_s >= LOOKUPS_SHARE_MIN * alone_s;
            let in_calls_s: f64 = calls.iter().filter(|call| call.service == resource).map(|call| call.request_s).sum();
            let rest_s = if is_part { alone_s - cpu_s(levels) - in_calls_s } else { 0.0 };
            Some(wait(WaitCause::Names, resource, "", seen_s.max(rest_s)))
        }
        Evidence::SlowDependency(slow) => {
            Some(wait(WaitCause::Callee, slow.callers.first()?, resource, slow.request_ns / 1e9))
        }
        Evidence::ConnectionChurn(churn) if churn.opened > 0.0 => {
            // Both ends compute while a connection is opened; the way between them is not known.
            let cores: f64 = churn.ends.iter().map(|end| end.connection_cores).sum();
            Some(wait(WaitCause::Connect, resource, &churn.peer, cores * churn.per_request / churn.opened))
        }
        Evidence::Stall(_) => Some(wait(WaitCause::Stall, resource, "", beyond_median_s(levels))),
        Evidence::BlockingCommand(command) => {
            let client = command.clients.first().map_or(resource, String::as_str);
            Some(wait(WaitCause::Stall, client, resource, beyond_median_s(levels)))
        }
        _ => None,
    }
}

/// CPU of a request in all services, with what they use without requests, core-seconds: a service that is hardly used needs
/// more for each than a busy one.
fn cpu_s(levels: &[Level]) -> f64 {
    let sampled = || levels.iter().filter(|level| !level.cpu.is_empty());
    let requests: f64 = sampled().map(|level| level.requests as f64).sum();
    let cpu_s: f64 = sampled().map(|level| level.services_cpu_s() * level.requests as f64).sum();
    if requests > 0.0 { cpu_s / requests } else { 0.0 }
}

/// Mean latency beyond the median, of all requests: where few requests meet a stall, the median is that of the others.
fn beyond_median_s(levels: &[Level]) -> f64 {
    let requests: f64 = levels.iter().map(|level| level.requests as f64).sum();
    let beyond = levels.iter().map(|level| (level.mean_s() - level.quantile_s(0.5)).max(0.0) * level.requests as f64);
    if requests > 0.0 { beyond.sum::<f64>() / requests } else { 0.0 }
}

/// Waits for the callees of services, by their sockets.
fn of_calls(limit: &Limit, calls: &CallGraph) -> Vec<Wait> {
    let is_service = |name: &str| calls.node(name).is_some_and(|node| node.kind == NodeKind::Service);
    let edges = calls.edges.iter().filter(|edge| edge.callee != NAME_SERVER && is_service(&edge.caller));
    let wait = |edge: &CallEdge| Wait {
        cause: WaitCause::Callee,
        service: edge.caller.clone(),
        callee: edge.callee.clone(),
        request_s: request_s(edge, limit),
    };
    edges.map(wait).filter(|wait| wait.request_s > 0.0).collect()
}

/// Time of a request in the calls of an edge, by Little's law: the lower median of the levels, because few samples tell little,
/// and under heavy load the callee's queue is part of it.
fn request_s(edge: &CallEdge, limit: &Limit) -> f64 {
    let levels = limit.levels.iter().zip(&edge.levels);
    let sampled = levels.filter(|(level, calls)| level.rate > 0.0 && calls.all.rate > 0.0 && !calls.is_background);
    let mut each: Vec<f64> = sampled.map(|(level, calls)| calls.all.requests().middle() / level.rate).collect();
    each.sort_by(f64::total_cmp);
    each.get(each.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

/// The parts of waits that pass while a section of such a length is held: at least as much as does not fit beside it into the
/// latency alone.
pub(super) fn within(waits: &[Wait], held_s: f64, alone_s: f64) -> Vec<Wait> {
    let inside = |wait: &Wait| {
        let overlap_s = held_s.min(alone_s) + wait.request_s - alone_s;
        Wait { request_s: overlap_s.clamp(0.0, wait.request_s.min(held_s)), ..wait.clone() }
    };
    waits.iter().map(inside).filter(|wait| wait.request_s > NOTABLE_SHARE * held_s).collect()
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::evidence::dns::Dns;
    use narrows_model::finding::evidence::slow_dependency::SlowDependency;
    use narrows_testkit::simulator;

    use super::*;

    fn wait(callee: &str, request_s: f64) -> Wait {
        Wait { cause: WaitCause::Callee, service: "shop".into(), callee: callee.into(), request_s }
    }

    #[test]
    fn a_section_as_long_as_the_request_holds_all_its_calls() {
        let calls = [wait("partner", 0.03)];
        assert_eq!(within(&calls, 0.04, 0.04), calls, "the section is the whole request");
        assert!((within(&calls, 0.02, 0.04)[0].request_s - 0.01).abs() < 1e-12, "10 ms do not fit beside it");
        assert_eq!(within(&calls, 0.01, 0.04), []);
    }

    #[test]
    fn findings_say_what_requests_wait_for() {
        let trial = simulator::System { steps: vec![(2, 15)], ..simulator::System::default() }.run("a");
        let slow = SlowDependency { callers: vec!["shop".into()], request_ns: 5e6, ..SlowDependency::default() };
        let names = Dns { request_ns: 3e6, ..Dns::default() };
        let finding =
            |resource: &str, evidence: Evidence| Finding { resource: resource.into(), ..Finding::new(evidence, 1) };
        let findings = [finding("partner", slow.into()), finding("shop", names.into())];
        let levels = super::super::levels(&trial).expect("levels");
        let found = waits(&DiagnosedTrial::new(&trial, &findings), &levels);
        let names = Wait { cause: WaitCause::Names, callee: String::new(), ..wait("", 0.003) };
        assert_eq!(found, [wait("partner", 0.005), names]);
    }
}
