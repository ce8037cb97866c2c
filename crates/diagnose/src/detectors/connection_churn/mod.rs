//! `connection-churn`: a service opens a connection for nearly every call instead of keeping some open.
//!
//! Each new connection costs a round trip and CPU at both ends, with TLS much more: keys are exchanged and certificates
//! checked. The sockets of the service show how many connections it opens, and how many requests and responses pass over
//! each. A handshake of TLS counts among these, so two or three exchanges may be one call. A connection that a sample
//! meets early has exchanged less than it will, so the mean is below the number of exchanges.
//!
//! How much CPU connections take does not show: under every load a request opens as many. It is assumed, at both ends,
//! and never more than an end uses. So the finding alone is no bottleneck; where the service or its peer has no CPU
//! left, it is the cause if connections take a good part of what both use.

use narrows_model::call_graph::{CallEdge, NAME_SERVER};
use narrows_model::finding::evidence::connection_churn as evidence;
use narrows_model::finding::{Confidence, Finding, FindingKind, Role};
use narrows_model::run::ServiceInstance;
use narrows_model::series::names;

use crate::Detector;
use crate::read::Reading;
use crate::read::intervals::{Interval, heaviest_steady};
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
    /// Share of both ends' CPU that connections take, where CPU was sampled.
    churn_cost_share: f64 = 0.05;
    /// Share of both ends' CPU that connections must take for churn to be the cause of a full processor.
    churn_cause_share: f64 = 0.2;
}

/// Exchanges over a connection, mean, from which some have more than one.
const TLS_EXCHANGES: f64 = 1.1;
/// CPU of one end for one connection, milliseconds: packets to open and close it, and the system calls for that.
const TCP_CPU_MS: f64 = 0.1;
/// The same with TLS: a key exchange, and a signature or the check of one. Clients and servers written in Go take 0.6 and
/// 1.3 ms with keys of 2,048 bits.
const TLS_CPU_MS: f64 = 1.0;
/// CPU of a connection with TLS at either end, milliseconds, at least. Where an end uses less than that in all, there is no TLS.
const TLS_CPU_MS_MIN: f64 = 0.5;

/// See the module.
#[derive(Debug)]
pub struct ConnectionChurn;

impl Detector for ConnectionChurn {
    fn kind(&self) -> FindingKind {
        FindingKind::ConnectionChurn
    }

    fn version(&self) -> u32 {
        2
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
    let of_service = |service: &String| Some((service.clone(), cores(reading, service, interval)?));
    let used: Vec<(String, f64)> = [&edge.caller, &edge.callee].into_iter().filter_map(of_service).collect();
    let least = finite(calls.opened * TLS_CPU_MS_MIN / 1e3);
    let is_tls_likely = exchanges >= TLS_EXCHANGES && used.iter().all(|(_, cores)| *cores >= least);
    let assumed_cpu_ms = if is_tls_likely { TLS_CPU_MS } else { TCP_CPU_MS };
    let ends = used.into_iter().map(|(service, cores)| {
        let connection_cores = finite(calls.opened * assumed_cpu_ms / 1e3).min(cores);
        evidence::ConnectionEnd { service, cores: finite(cores), connection_cores }
    });
    let ends: Vec<evidence::ConnectionEnd> = ends.collect();
    let cores: f64 = ends.iter().map(|end| end.cores).sum();
    let of_connections: f64 = ends.iter().map(|end| end.connection_cores).sum();
    let cost_share = finite(of_connections / cores);
    if !ends.is_empty() && cost_share < thresholds.churn_cost_share {
        return None;
    }
    let evidence = evidence::ConnectionChurn {
        peer: edge.callee.clone(),
        opened: finite(calls.opened),
        per_request: finite(per_request),
        exchanges: finite(exchanges),
        is_tls_likely,
        assumed_cpu_ms,
        ends,
        time_wait: time_wait(reading, &edge.caller, interval).map(finite),
        interval: interval.label.clone(),
        load: interval.load_level(),
    };
    Some(Finding {
        resource: edge.caller.clone(),
        cost_share,
        confidence: Confidence::Medium,
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    })
}

/// Closed connections that hold a port of a service's own network, else of the machine.
fn time_wait(reading: &Reading<'_>, service: &str, interval: &Interval) -> Option<f64> {
    let median = |key| interval.rough_median_of(reading.trial, key);
    median((names::TIME_WAIT, service, 0)).or_else(|| median((names::HOST_TIME_WAIT, "", 0)))
}

/// CPU of a service, for which few samples are enough: it is compared with an assumption. `None` if it is not known.
fn cores(reading: &Reading<'_>, service: &str, interval: &Interval) -> Option<f64> {
    let replicas = reading.trial.services.iter().filter(|instance| instance.service == service);
    let of_replica = |instance: &ServiceInstance| {
        interval.rough_median_of(reading.trial, (names::CPU_CORES, service, instance.replica))
    };
    replicas.map(of_replica).sum::<Option<f64>>().filter(|cores| *cores > 0.0)
}

#[cfg(test)]
mod tests;
