//! `connection-churn`: a service opens a connection for nearly every call instead of keeping some open.
//!
//! Each new connection costs a round trip and CPU at both ends, with TLS much more: keys are exchanged and certificates
//! checked. The sockets of the service show how many connections it opens, and how many requests and responses pass over
//! each. A handshake of TLS counts among these, so two or three exchanges may be one call.
//!
//! How much CPU handshakes take is estimated from their number, so the finding alone is no bottleneck; where the service
//! or its peer has no CPU left, it is the cause if handshakes take a good part of it.

use narrows_model::call_graph::{CallEdge, NAME_SERVER};
use narrows_model::finding::evidence::connection_churn as evidence;
use narrows_model::finding::{Confidence, Finding, FindingKind, Role};
use narrows_model::series::names;

use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::heaviest_steady;
use crate::read::periods::period_of;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Connections opened per request of the load.
    churn_per_request: f64 = 0.5;
    /// Exchanges of a request and a response over each connection, at most.
    churn_exchanges: f64 = 4.0;
    /// Connections opened per second.
    churn_rate: f64 = 5.0;
    /// Share of the service's CPU that handshakes must take for churn to be the cause of a full processor.
    churn_cause_share: f64 = 0.2;
}

/// Exchanges over a connection from which one of them was a handshake of TLS, if each carries one call.
const TLS_EXCHANGES: f64 = 1.8;
/// CPU of the caller for one connection, seconds: three packets to open and as many to close, system calls included.
const TCP_CPU_S: f64 = 0.1e-3;
/// The same with TLS: one key exchange and the check of a chain of certificates.
const TLS_CPU_S: f64 = 1e-3;

/// See the module.
#[derive(Debug)]
pub struct ConnectionChurn;

impl Detector for ConnectionChurn {
    fn kind(&self) -> FindingKind {
        FindingKind::ConnectionChurn
    }

    fn version(&self) -> u32 {
        1
    }

    fn role(&self, _finding: &Finding) -> Role {
        Role::CostsMore
    }

    fn explains_gaps(&self) -> bool {
        false
    }

    fn explains_slow_calls(&self) -> bool {
        false
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let Some(at) = heaviest_steady(reading.intervals) else { return Vec::new() };
        let reached = reading.conversations().reached();
        let edges = reading.conversations().graph.edges.iter();
        let of_services = edges.filter(|edge| reached.contains(edge.caller.as_str()) && edge.callee != NAME_SERVER);
        of_services.filter_map(|edge| of_edge(self, reading, edge, at)).collect()
    }
}

fn of_edge(detector: &ConnectionChurn, reading: &Reading<'_>, edge: &CallEdge, at: usize) -> Option<Finding> {
    let thresholds = &reading.thresholds.connection_churn;
    let (interval, calls) = (&reading.intervals[at], &edge.levels[at].all);
    let per_request = calls.opened / interval.rate;
    let exchanges = calls.rate / calls.opened;
    let is_found = calls.opened >= thresholds.churn_rate
        && per_request >= thresholds.churn_per_request
        && exchanges <= thresholds.churn_exchanges;
    if !is_found || !per_request.is_finite() {
        return None;
    }
    let cores = Cpu::new(reading).service_cores(&edge.caller, interval);
    let each_s = if exchanges >= TLS_EXCHANGES { TLS_CPU_S } else { TCP_CPU_S };
    let handshake_cores = calls.opened * each_s;
    let evidence = evidence::ConnectionChurn {
        peer: edge.callee.clone(),
        opened: finite(calls.opened),
        per_request: finite(per_request),
        exchanges: finite(exchanges),
        cores: cores.map(finite),
        handshake_cores: finite(handshake_cores),
        time_wait: interval.rough_median_of(reading.trial, (names::HOST_TIME_WAIT, "", 0)).map(finite),
        interval: interval.label.clone(),
        load: interval.load_level(),
    };
    let share = cores.filter(|cores| *cores > 0.0).map_or(0.0, |cores| handshake_cores / cores);
    Some(Finding {
        resource: edge.caller.clone(),
        cost_share: finite(share).min(1.0),
        confidence: Confidence::Medium,
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    })
}

#[cfg(test)]
mod tests;
