//! Waits for a connection that sockets show, without spans or metrics of the pool.

use narrows_model::finding::evidence::pool_wait::{PoolSign, PoolWait as Evidence};
use narrows_model::finding::evidence::sockets::{SocketPool, SocketReading};
use narrows_model::finding::{Caveat, Confidence, Finding};

use super::PoolWait;
use crate::Detector;
use crate::detectors::slow_dependency::by_sockets::NARROW_SHARE;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::full_pools::FullPool;
use crate::read::intervals::heaviest_level;
use crate::read::periods::period_of;
use crate::stats::finite;

/// The wait of a service's requests under the heaviest load.
pub(super) fn finding(reading: &Reading<'_>, service: &str) -> Option<Finding> {
    let thresholds = &reading.thresholds.pool_wait;
    let at = heaviest_level(reading.intervals)?;
    let interval = &reading.intervals[at];
    let pool = FullPool::of(reading, service, at)?;
    let sockets = SocketReading {
        interval: interval.label.clone(),
        load: interval.load_level(),
        waiting: pool.waiting,
        in_flight: finite(interval.in_flight()),
    };
    let per_request = |requests: f64| finite(requests / interval.rate * 1e9);
    let wait_ns = per_request(pool.waiting.middle());
    // Of calls at once, the time of one is that of all.
    let query_ns = per_request(pool.in_use) / pool.calls_at_once.unwrap_or(1.0);
    let is_long = wait_ns >= thresholds.pool_wait_ns && wait_ns >= thresholds.pool_wait_query_factor * query_ns;
    if sockets.share() < thresholds.pool_wait_share || !is_long {
        return None;
    }
    let is_known = pool.waiting.is_narrow(NARROW_SHARE) && pool.loads > 1;
    let proof = Cpu::new(reading).proof(at);
    let share = sockets.share();
    let evidence = Evidence {
        sign: PoolSign::Sockets,
        wait_ns,
        query_ns: finite(query_ns),
        other_calls_ns: if pool.held_for.is_some() { per_request(pool.connections - pool.in_use) } else { 0.0 },
        sockets: Some(SocketPool {
            peer: pool.peer,
            connections: finite(pool.connections),
            in_use: finite(pool.in_use),
            calls_at_once: pool.calls_at_once.map(finite),
            held_for: pool.held_for,
            loads: pool.loads,
            reading: sockets,
        }),
        ..Evidence::default()
    };
    Some(Finding {
        resource: service.to_owned(),
        cost_share: share,
        confidence: if is_known && proof.is_some() { Confidence::High } else { Confidence::Medium },
        caveats: vec![Caveat::MoreQueriesAtOnce],
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, PoolWait.version())
    })
}
