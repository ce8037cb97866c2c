//! `lock-wait`: statements wait for locks that other sessions of the database hold.
//!
//! The server says so itself: its sessions are sampled several times a second, so the mean number that waits for a lock is
//! also the number of requests that wait there. Compared with the requests under way, by Little's law, it is the share
//! of the users' time. No span is needed.
//!
//! The server also names the holder of the lock, at the end of the chain of waits: another statement, or a transaction
//! that executes nothing while its program does something else. It is judged at the heaviest load: of a session that waits
//! beside the load, as a migration does, the share is small there. A load whose statements wait only because the server has no CPU left is
//! `database-saturation`, which comes first.

use narrows_model::finding::evidence::lock_wait as evidence;
use narrows_model::finding::{Confidence, Evidence, Finding, FindingKind};

use crate::Detector;
use crate::exemplars::{TEXT_CHARS_MAX, clipped};
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::machine::is_crowded_out;
use crate::read::periods::period_of;
use crate::read::runtimes::machine_caveats;
use crate::read::servers::{Sessions, clients, servers, sessions, waiting_statements};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Share of the requests under way that must wait for a lock.
    lock_wait_share: f64 = 0.2;
    /// Sessions that must wait for a lock at any time, mean.
    lock_wait_sessions: f64 = 0.5;
}

/// Statements in the evidence, and holders of each.
const STATEMENTS_MAX: usize = 3;
/// Share of the waiting sessions that a statement or a holder must account for, to be in the evidence.
const SHOWN_SHARE_MIN: f64 = 0.05;

/// See the module.
#[derive(Debug)]
pub struct LockWait;

impl Detector for LockWait {
    fn kind(&self) -> FindingKind {
        FindingKind::LockWait
    }

    fn version(&self) -> u32 {
        1
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    /// Time that a request waits for locks: sessions that wait ÷ requests per second.
    fn request_cost_ns(&self, finding: &Finding) -> Option<f64> {
        let Evidence::LockWait(evidence) = &finding.evidence else { return None };
        evidence.request_wait_ns()
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        servers(reading.trial).into_iter().filter_map(|server| of_server(self, reading, server)).collect()
    }
}

/// The finding for the heaviest load: a wait that the load causes is largest there.
fn of_server(detector: &LockWait, reading: &Reading<'_>, server: (&str, u32)) -> Option<Finding> {
    let thresholds = &reading.thresholds.lock_wait;
    let known = (0..reading.intervals.len()).filter_map(|at| {
        let interval = &reading.intervals[at];
        let sessions = sessions(reading.trial, server, interval)?;
        (interval.rate > 0.0 && !is_crowded_out(reading, at)).then_some((interval, sessions))
    });
    let (interval, sessions) = known.max_by(|(a, _), (b, _)| a.by_demand(b))?;
    let is_much =
        sessions.waiting >= thresholds.lock_wait_sessions && share(&sessions, interval) >= thresholds.lock_wait_share;
    is_much.then(|| finding(detector, reading, server, interval, &sessions))
}

fn share(sessions: &Sessions, interval: &Interval) -> f64 {
    sessions.waiting / interval.in_flight().max(sessions.waiting).max(f64::MIN_POSITIVE)
}

fn finding(
    detector: &LockWait,
    reading: &Reading<'_>,
    server: (&str, u32),
    interval: &Interval,
    sessions: &Sessions,
) -> Finding {
    let cpu = Cpu::new(reading);
    let mut statements = waiting_statements(reading.trial, server, interval);
    statements.retain(|statement| statement.sessions >= SHOWN_SHARE_MIN * sessions.waiting);
    statements.truncate(STATEMENTS_MAX);
    for statement in &mut statements {
        statement.statement = clipped(&statement.statement, TEXT_CHARS_MAX);
        let least = SHOWN_SHARE_MIN * statement.sessions;
        statement.holders.retain(|holder| holder.sessions >= least);
        statement.holders.truncate(STATEMENTS_MAX);
    }
    let is_named = !statements.is_empty();
    let evidence = evidence::LockWait {
        interval: interval.label.clone(),
        load: interval.load_level(),
        rate: finite(interval.rate),
        under_way: finite(interval.in_flight()),
        waiting: finite(sessions.waiting),
        active: sessions.active.map(finite),
        idle_in_transaction: sessions.idle_in_transaction.map(finite),
        statements,
        clients: clients(reading.trial, server.0).into_iter().map(str::to_owned).collect(),
        database_cpu_share: cpu.busy_share(server.0, interval).map(finite),
    };
    Finding {
        resource: server.0.to_owned(),
        cost_share: finite(share(sessions, interval)).min(1.0),
        confidence: if is_named { Confidence::High } else { Confidence::Medium },
        caveats: machine_caveats(&cpu, interval),
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

#[cfg(test)]
mod tests;
