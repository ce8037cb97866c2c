//! Activity of the threads of a service in an interval, and what the requests in it waited for.
//!
//! States of threads are not those of requests: idle threads wait for locks and events too. How many requests are in a
//! service's own time follows from Little's law. They are divided in the order of how sure it is that a thread in a
//! state serves a request, each part as far as requests remain: CPU in use, waiting for CPU, disk, sleep, network,
//! connection, lock. Threads that spans explain are subtracted first: threads at the other end of calls, in waits to
//! retry, in waits for a pool. So are idle threads: those that the requests under the lightest load leave over.
//!
//! Requests need no thread each: in many programs none waits for a peer. The sockets of a service say how many requests
//! wait for each peer, whatever its threads do; where they are sampled, threads count only for peers without TCP.

use std::collections::BTreeMap;

use narrows_model::breakdown::{OwnPart, OwnTime, ServiceThreads, ThreadsBy};
use narrows_model::evidence::TrialEvidence;
use narrows_model::series::names::{CPU_CORES, CPU_WAIT, NETWORK_PEER, THREAD_STATE, THREAD_STATES};
use narrows_model::series::{Series, SeriesKey, ThreadState, names};

use crate::read::Reading;
use crate::read::conversations::Conversations;
use crate::read::cpu::Cpu;
use crate::read::full_pools::FullPool;
use crate::read::intervals::{Interval, heaviest_steady};
use crate::read::machine::is_short_of_cpu;
use crate::read::peers::peer;

/// Points that a mean needs at least.
const POINTS_MIN: usize = 3;
/// Fewer requests than this count as zero: samples are less exact.
const REQUESTS_MIN: f64 = 0.005;
/// Share by which sockets may show more calls than spans do, because both are samples.
const CALLS_ERROR_SHARE: f64 = 0.1;
/// Requests must have grown by this factor for threads that have not to count as idle.
const REQUESTS_GROWTH_MIN: f64 = 1.5;
/// Share of the growth of requests by which threads in a lock must have grown, so that any of them serve requests.
const LOCK_GROWTH_SHARE: f64 = 0.25;

/// The threads of a service, means over an interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Threads {
    pub(crate) by: ThreadsBy,
    /// Requests that wait for a peer, or threads where its sockets were not sampled: a service of the run, else an address.
    pub(crate) peers: BTreeMap<String, f64>,
    /// The pool that requests wait in front of.
    pub(crate) pool: Option<FullPool>,
}

/// Threads of a service that serve no request, by state.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Idle {
    pub(crate) lock: f64,
    pub(crate) sleep: f64,
}

impl Idle {
    /// From the threads and requests under the lightest and the heaviest load. A service with few threads for many
    /// requests, as in Go, has as many threads in a lock under each load; none of them serves a request.
    pub(crate) fn of((light, few): (&Threads, &Shown), (heavy, many): (&Threads, &Shown)) -> Self {
        if many.own < REQUESTS_GROWTH_MIN * few.own {
            return Self::default();
        }
        let parts = light.divide(few, Self::default());
        let left_over = |threads: f64, what: &OwnTime| {
            let serving: f64 = parts.iter().filter(|part| part.what == *what).map(|part| part.requests).sum();
            (threads - serving).max(0.0)
        };
        let grows = heavy.by.lock - light.by.lock >= LOCK_GROWTH_SHARE * (many.own - few.own);
        let lock = if grows { left_over(light.by.lock, &OwnTime::Lock) } else { f64::INFINITY };
        Self { lock, sleep: left_over(light.by.sleep, &OwnTime::Sleep) }
    }
}

/// Requests of a service in an interval as spans show them: mean numbers at any moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Shown {
    /// Requests in its own time.
    pub(crate) own: f64,
    /// Requests that wait for a connection.
    pub(crate) pool: f64,
    /// Requests that wait to retry.
    pub(crate) back_off: f64,
    /// Calls under way, by target.
    pub(crate) calls: BTreeMap<String, f64>,
}

impl Threads {
    /// `None` if its threads were not sampled. The interval is given by its place among all too.
    pub(crate) fn of(reading: &Reading<'_>, service: &str, at: usize) -> Option<Self> {
        let (trial, interval) = (reading.trial, &reading.intervals[at]);
        let mut threads = Self::default();
        let mut is_sampled = false;
        for instance in trial.services.iter().filter(|instance| instance.service == service) {
            is_sampled |= threads.add(trial, (service, instance.replica), interval).is_some();
        }
        threads.add_sockets(reading.conversations(), service, at);
        threads.pool = FullPool::of(reading, service, at);
        is_sampled.then_some(threads)
    }

    fn add_sockets(&mut self, conversations: &Conversations, service: &str, at: usize) {
        for (peer, requests) in conversations.behind(service, at) {
            self.peers.insert(peer.to_owned(), requests.middle());
        }
    }

    fn add(&mut self, trial: &TrialEvidence, replica: (&str, u32), interval: &Interval) -> Option<()> {
        let of_replica =
            || trial.series.iter().filter(|series| (series.key.service.as_str(), series.key.replica) == replica);
        let label = |series: &Series, label: &str| series.key.labels.get(label).cloned().unwrap_or_default();
        let of_state = |state: ThreadState| {
            let is_state = move |series: &&Series| {
                series.key.name == THREAD_STATES && label(series, THREAD_STATE) == state.as_str()
            };
            of_replica().filter(is_state)
        };
        let (_, points) = of_state(ThreadState::Running).map(|series| sum(series, interval)).next()?;
        if points < POINTS_MIN {
            return None;
        }
        let mean = |state| of_state(state).map(|series| sum(series, interval).0).sum::<f64>() / points as f64;
        let rate = |name: &str| {
            let (sum, points) = of_replica().find(|series| series.key.name == name).map(|one| sum(one, interval))?;
            (points > 0).then(|| sum / points as f64)
        };
        for series in of_state(ThreadState::Network) {
            if let Some(peer) = peer(trial, &label(series, NETWORK_PEER)) {
                *self.peers.entry(peer.name().to_owned()).or_default() += sum(series, interval).0 / points as f64;
            }
        }
        // Threads that a limit of the control group holds wait for a processor too, in kernels that count them.
        let wait = rate(CPU_WAIT).unwrap_or(0.0).max(rate(names::CGROUP_THROTTLED_TIME).unwrap_or(0.0));
        let by = &mut self.by;
        by.on_cpu += rate(CPU_CORES).unwrap_or(0.0);
        by.waiting_for_cpu += wait;
        by.lock += mean(ThreadState::Lock);
        by.disk += mean(ThreadState::Disk);
        by.sleep += mean(ThreadState::Sleep);
        by.network += mean(ThreadState::Network);
        by.idle += mean(ThreadState::Events) + mean(ThreadState::Other);
        Some(())
    }

    /// Divides the requests that are in the service's own time among what its threads do.
    pub(crate) fn divide(&self, shown: &Shown, idle: Idle) -> Vec<OwnPart> {
        let mut left = shown.own;
        let mut parts = Vec::new();
        let mut take = |what: OwnTime, threads: f64, left: &mut f64| {
            let requests = threads.clamp(0.0, *left);
            *left -= requests;
            if requests >= REQUESTS_MIN {
                parts.push(OwnPart { what, requests });
            }
        };
        take(OwnTime::OnCpu, self.by.on_cpu, &mut left);
        take(OwnTime::WaitingForCpu, self.by.waiting_for_cpu, &mut left);
        take(OwnTime::Disk, self.by.disk, &mut left);
        take(OwnTime::Sleep, self.by.sleep - idle.sleep - shown.back_off, &mut left);
        for (peer, requests) in self.unexplained(&shown.calls) {
            take(OwnTime::Network(peer), requests, &mut left);
        }
        if let Some(pool) = &self.pool {
            take(OwnTime::Connection(pool.peer.clone()), pool.waiting.middle() - shown.pool, &mut left);
        }
        take(OwnTime::Lock, self.by.lock - idle.lock - shown.pool, &mut left);
        take(OwnTime::Unseen, left, &mut left.clone());
        parts
    }

    /// Requests that wait for peers beyond the calls that spans show, most first. Calls whose name is no peer's, as that
    /// of a database at an address, are taken off the largest.
    fn unexplained(&self, calls: &BTreeMap<String, f64>) -> Vec<(String, f64)> {
        let error = 1.0 + CALLS_ERROR_SHARE;
        let mut peers: Vec<(String, f64)> = self
            .peers
            .iter()
            .map(|(name, waiting)| (name.clone(), (waiting - error * calls.get(name).unwrap_or(&0.0)).max(0.0)))
            .collect();
        peers.sort_by(|a, b| b.1.total_cmp(&a.1));
        let elsewhere = calls.iter().filter(|(name, _)| !self.peers.contains_key(*name));
        let mut elsewhere = error * elsewhere.map(|(_, under_way)| under_way).sum::<f64>();
        for (_, threads) in &mut peers {
            let explained = threads.min(elsewhere);
            *threads -= explained;
            elsewhere -= explained;
        }
        peers
    }
}

/// The values of a series in an interval added up, and how many they are.
fn sum(series: &Series, interval: &Interval) -> (f64, usize) {
    let values = series.points.iter().filter(|point| interval.contains(point.time_ns)).map(|point| point.value);
    values.fold((0.0, 0), |(sum, points), value| (sum + value, points + 1))
}

/// A service under the heaviest steady load that leaves it CPU, and what the requests in its own time do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadedService<'a> {
    pub(crate) service: &'a str,
    /// The interval, by its place among all.
    pub(crate) at: usize,
    pub(crate) interval: &'a Interval,
    /// Requests in its own time.
    pub(crate) requests: f64,
    pub(crate) threads: &'a ServiceThreads,
}

impl LoadedService<'_> {
    /// Requests that do this.
    pub(crate) fn doing(&self, what: &OwnTime) -> f64 {
        self.threads.own.iter().filter(|part| part.what == *what).map(|part| part.requests).sum()
    }
}

/// Requests of a service that may wait for a lock: as many as no other wait is known of and threads are in one, idle ones
/// too. Threads of a fixed number are as many in a lock under each load.
pub(crate) fn may_wait_for_lock(service: &ServiceThreads) -> f64 {
    let is_elsewhere = |part: &&OwnPart| !matches!(part.what, OwnTime::Lock | OwnTime::Unseen);
    let elsewhere: f64 = service.own.iter().filter(is_elsewhere).map(|part| part.requests).sum();
    service.threads.lock.min(service.requests.unwrap_or(0.0) - elsewhere).max(0.0)
}

/// Those services whose threads were sampled; nothing where CPU is used up by any of them or on the machine, which would
/// explain the throughput.
pub(crate) fn loaded<'a>(reading: &Reading<'a>) -> Vec<LoadedService<'a>> {
    if !reading.trial.series.iter().any(|series| series.key.name == THREAD_STATES) {
        return Vec::new();
    }
    let Some(at) = heaviest_steady(reading.intervals) else { return Vec::new() };
    let interval = &reading.intervals[at];
    let cpu = Cpu::new(reading);
    let is_full = |service: &&str| {
        cpu.busy_share(service, interval)
            .is_some_and(|share| share >= reading.thresholds.cpu_saturation.cpu_limit_share)
    };
    if is_short_of_cpu(reading, at) || reading.trial.service_names().iter().any(is_full) {
        return Vec::new();
    }
    let threads = reading.spent().threads.get(at).into_iter().flatten();
    let of = |threads: &'a ServiceThreads| {
        Some(LoadedService { service: &threads.service, at, interval, requests: threads.requests?, threads })
    };
    threads.filter_map(of).collect()
}

/// The mean of a figure in an interval, added up over all series that are meant; none without a point.
pub(crate) fn mean(trial: &TrialEvidence, interval: &Interval, is_meant: impl Fn(&SeriesKey) -> bool) -> Option<f64> {
    let series = trial.series.iter().filter(|series| is_meant(&series.key));
    let means = series.map(|series| sum(series, interval)).filter(|(_, points)| *points > 0);
    means.map(|(sum, points)| sum / points as f64).reduce(|all, mean| all + mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(by: ThreadsBy, peers: &[(&str, f64)]) -> Threads {
        let peers: BTreeMap<String, f64> = peers.iter().map(|(name, threads)| ((*name).to_owned(), *threads)).collect();
        Threads { by: ThreadsBy { network: peers.values().sum(), ..by }, peers, pool: None }
    }

    fn shown(own: f64, calls: &[(&str, f64)]) -> Shown {
        let calls = calls.iter().map(|(name, under_way)| ((*name).to_owned(), *under_way)).collect();
        Shown { own, calls, ..Shown::default() }
    }

    fn divided(threads: &Threads, shown: &Shown) -> Vec<(OwnTime, f64)> {
        let parts = threads.divide(shown, Idle::default());
        assert!((parts.iter().map(|part| part.requests).sum::<f64>() - shown.own).abs() < 0.05, "{parts:?}");
        parts.into_iter().map(|part| (part.what, (part.requests * 100.0).round() / 100.0)).collect()
    }

    #[test]
    fn requests_are_divided_as_far_as_they_go() {
        use OwnTime::{Disk, Lock, OnCpu, Sleep, Unseen, WaitingForCpu};
        let idle = ThreadsBy { on_cpu: 0.5, waiting_for_cpu: 0.5, lock: 20.0, idle: 5.0, ..ThreadsBy::default() };
        let pool = threads(idle, &[]);
        assert_eq!(divided(&pool, &shown(8.0, &[])), [(OnCpu, 0.5), (WaitingForCpu, 0.5), (Lock, 7.0)]);
        assert_eq!(divided(&pool, &shown(0.4, &[])), [(OnCpu, 0.4)], "idle threads wait too");
        assert_eq!(divided(&pool, &shown(0.0, &[])), []);
        let mixed = threads(ThreadsBy { disk: 1.0, sleep: 2.0, ..ThreadsBy::default() }, &[]);
        assert_eq!(divided(&mixed, &shown(4.0, &[])), [(Disk, 1.0), (Sleep, 2.0), (Unseen, 1.0)]);
    }

    #[test]
    fn what_spans_explain_is_no_own_time() {
        use OwnTime::{Lock, Network, Sleep, Unseen};
        let to = |name: &str| Network(name.to_owned());
        let calling = threads(ThreadsBy { lock: 9.0, ..ThreadsBy::default() }, &[("bank", 4.0), ("10.0.0.5:1", 2.0)]);
        assert_eq!(divided(&calling, &shown(2.0, &[("bank", 4.0), ("postgresql", 2.0)])), [(Lock, 2.0)]);
        assert_eq!(
            divided(&calling, &shown(4.0, &[("bank", 3.0)])),
            [(to("10.0.0.5:1"), 2.0), (to("bank"), 0.7), (Lock, 1.3)]
        );
        let waits = threads(ThreadsBy { lock: 3.0, sleep: 2.0, ..ThreadsBy::default() }, &[]);
        let explained = Shown { pool: 3.0, back_off: 1.0, ..shown(2.0, &[]) };
        assert_eq!(divided(&waits, &explained), [(Sleep, 1.0), (Unseen, 1.0)]);
    }

    #[test]
    fn threads_that_do_not_grow_with_the_load_are_idle() {
        use OwnTime::{Lock, OnCpu, Unseen};
        let under = |lock: f64| threads(ThreadsBy { on_cpu: 0.2, lock, ..ThreadsBy::default() }, &[]);
        let of = |light: (f64, f64), heavy: (f64, f64)| {
            let (few, many) = (shown(light.0, &[]), shown(heavy.0, &[]));
            let idle = Idle::of((&under(light.1), &few), (&under(heavy.1), &many));
            let parts = under(heavy.1).divide(&many, idle);
            parts.into_iter().map(|part| (part.what, (part.requests * 10.0).round() / 10.0)).collect::<Vec<_>>()
        };
        assert_eq!(of((1.0, 7.0), (16.0, 7.0)), [(OnCpu, 0.2), (Unseen, 15.8)], "threads of Go");
        assert_eq!(of((1.0, 4.8), (16.0, 19.0)), [(OnCpu, 0.2), (Lock, 15.0), (Unseen, 0.8)], "four are idle");
        assert_eq!(of((8.0, 7.0), (8.0, 7.0)), [(OnCpu, 0.2), (Lock, 7.0), (Unseen, 0.8)], "one load shows nothing");
    }
}
