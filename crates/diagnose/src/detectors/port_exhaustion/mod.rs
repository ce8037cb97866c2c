//! `port-exhaustion`: a service cannot open connections because no local port is free.
//!
//! Each connection to a peer needs its own local port, and a closed connection keeps its port in the state TIME_WAIT
//! for a minute. A program that opens a connection per request therefore uses up the range within seconds. Errors
//! count as evidence (`reports.rs`). So does, in a network namespace of the service's own, throughput that falls while its
//! CPU per request grows (`by_sockets.rs`). Many connections in TIME_WAIT alone do no harm, because they may belong to many
//! peers, and the kernel reuses ports for other peers.

use narrows_model::finding::evidence::port_exhaustion as evidence;
use narrows_model::finding::{Confidence, Finding, FindingKind};
use narrows_model::series::names;

use crate::Detector;
use crate::exemplars::{TEXT_CHARS_MAX, clipped};
use crate::read::Reading;
use crate::read::error_reports::{ErrorReports, Least};
use crate::read::periods::period_of;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;
use by_sockets::Shortage;

mod by_sockets;
mod reports;
mod words;

rule_thresholds! {
    /// Traces that must show an error that says so.
    port_traces: usize = 3;
    /// Share of all requests that must meet such an error.
    port_error_share: f64 = 0.005;
    /// Share of the local ports that closed connections must hold to confirm it.
    port_held_share: f64 = 0.5;
    /// Share of the ports to all peers that closed connections must hold for the search for a free one to be the cause.
    port_search_share: f64 = 0.45;
    /// Share of the throughput that must be lost from then on.
    port_search_loss: f64 = 0.3;
    /// Factor by which the CPU of the service for a request must have grown.
    port_search_cpu: f64 = 1.5;
}

/// See the module.
#[derive(Debug)]
pub struct PortExhaustion;

impl Detector for PortExhaustion {
    fn kind(&self) -> FindingKind {
        FindingKind::PortExhaustion
    }

    fn version(&self) -> u32 {
        2
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let thresholds = &reading.thresholds.port_exhaustion;
        let least = Least { traces: thresholds.port_traces, share: thresholds.port_error_share };
        let reported = ErrorReports::by_service(reading, reports::reported, least);
        let mut findings: Vec<Finding> =
            reported.iter().map(|(service, reported)| finding(self, reading, service, reported)).collect();
        for shortage in by_sockets::shortages(reading) {
            if findings.iter().all(|known| known.resource != shortage.service) {
                findings.push(searching(self, reading, &shortage));
            }
        }
        findings
    }
}

fn searching(detector: &PortExhaustion, reading: &Reading<'_>, shortage: &Shortage<'_>) -> Finding {
    let (before, after) = shortage.search.rates;
    let evidence = evidence::PortExhaustion {
        time_wait: Some(finite(shortage.held)),
        ports: Some(finite(shortage.ports)),
        search: Some(shortage.search.clone()),
        ..evidence::PortExhaustion::default()
    };
    Finding {
        resource: shortage.service.into(),
        cost_share: finite(1.0 - after / before),
        confidence: Confidence::High,
        period: period_of(reading.trial, shortage.start_ns, shortage.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

fn finding(detector: &PortExhaustion, reading: &Reading<'_>, service: &str, reported: &ErrorReports<'_>) -> Finding {
    let most_of = |name: &str, of: &str| {
        let series = reading.trial.series.iter().filter(|one| one.key.name == name && one.key.service == of);
        let points = series.flat_map(|series| &series.points);
        let counted = points.filter(|point| reading.trial.is_counted(point.time_ns));
        counted.map(|point| point.value).max_by(f64::total_cmp).map(finite)
    };
    // Of a network that the service has to itself, else of the machine.
    let most = |own: &str, host: &str| most_of(own, service).or_else(|| most_of(host, ""));
    let facts = &reported.span.facts;
    let peer = facts.server_address.as_ref().map(|address| match facts.server_port {
        Some(port) => format!("{address}:{port}"),
        None => address.clone(),
    });
    let evidence = evidence::PortExhaustion {
        name: reported.name.to_owned(),
        text: reported.text.map(|text| clipped(text, TEXT_CHARS_MAX)),
        share: finite(reported.share),
        traces: reported.count(),
        peer,
        time_wait: most(names::TIME_WAIT, names::HOST_TIME_WAIT),
        ports: most(names::EPHEMERAL_PORTS, names::HOST_EPHEMERAL_PORTS),
        search: None,
    };
    let is_seen =
        evidence.held_share().is_some_and(|share| share >= reading.thresholds.port_exhaustion.port_held_share);
    Finding {
        resource: service.into(),
        cost_share: finite(reported.share).min(1.0),
        confidence: if is_seen { Confidence::High } else { Confidence::Medium },
        exemplars: reported.exemplars(reports::reported),
        ..Finding::new(evidence, detector.version())
    }
}

#[cfg(test)]
mod tests;
