//! Look-ups that sockets show: requests to a name server that wait for its response.

use narrows_model::call_graph::{CallLevel, NAME_SERVER};
use narrows_model::finding::evidence::dns::{Dns as Evidence, DnsSign};
use narrows_model::finding::evidence::sockets::SocketReading;
use narrows_model::finding::{Confidence, Finding};

use super::Dns;
use crate::Detector;
use crate::read::Reading;
use crate::read::intervals::{Interval, heaviest_steady};
use crate::read::periods::period_of;
use crate::stats::finite;

/// Look-ups that a request makes at once: of addresses of IPv4 and of IPv6.
const AT_ONCE_MAX: f64 = 2.0;
/// Look-ups that a full machine delays take less: a few turns of other programs at the processor, nanoseconds.
const FULL_MACHINE_NS: f64 = 10e6;
/// Intervals in which requests wait for shorter look-ups, if they do not in the heaviest.
const REPEATED_MIN: usize = 2;

/// The finding of a service for the interval where look-ups take the largest share of the requests' time.
pub(super) fn finding(reading: &Reading<'_>, service: &str) -> Option<Finding> {
    let thresholds = &reading.thresholds.dns;
    let conversations = reading.conversations();
    let edge = conversations.graph.from(service).find(|edge| edge.callee == NAME_SERVER)?;
    let levels = reading.intervals.iter().zip(&edge.levels).filter(|(interval, _)| interval.rate > 0.0);
    let found = levels.map(|(interval, level)| {
        let in_flight = interval.in_flight();
        let sockets = SocketReading {
            interval: interval.label.clone(),
            load: interval.load_level(),
            waiting: level.all.requests().at_most(in_flight),
            in_flight: finite(in_flight),
        };
        (interval, level, sockets)
    });
    // Of more look-ups, some are made by no request.
    let found = found.filter(|(interval, level, _)| level.all.requests().low <= AT_ONCE_MAX * interval.in_flight());
    let request_ns = |interval: &Interval, sockets: &SocketReading| sockets.waiting.low / interval.rate * 1e9;
    let is_long = |(interval, _, sockets): &(&Interval, &CallLevel, SocketReading)| {
        sockets.share() >= thresholds.dns_share && request_ns(interval, sockets) >= thresholds.dns_ns
    };
    let long: Vec<_> = found.filter(is_long).collect();
    let heaviest = heaviest_steady(reading.intervals).map(|at| &reading.intervals[at].label);
    // A machine that is full for a moment delays responses of all kinds.
    let is_certain = |(interval, _, sockets): &(&Interval, &CallLevel, SocketReading)| {
        Some(&interval.label) == heaviest || request_ns(interval, sockets) >= FULL_MACHINE_NS
    };
    if long.len() < REPEATED_MIN && !long.iter().any(is_certain) {
        return None;
    }
    let (interval, level, sockets) = long.into_iter().max_by(|(.., a), (.., b)| a.share().total_cmp(&b.share()))?;
    let request_ns = request_ns(interval, &sockets);
    let cost_share = finite(sockets.share());
    let evidence = Evidence {
        sign: DnsSign::Sockets,
        per_request: finite(level.all.rate / interval.rate),
        request_ns: finite(request_ns),
        lookup_ns: level.all.wait_ns().map_or(0.0, |wait_ns| finite(wait_ns.middle())),
        sockets: Some(sockets),
        ..Evidence::default()
    };
    Some(Finding {
        resource: service.to_owned(),
        cost_share,
        confidence: Confidence::Medium,
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, Dns.version())
    })
}
