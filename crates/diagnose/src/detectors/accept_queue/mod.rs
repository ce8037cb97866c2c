//! `accept-queue`: connections wait before a service accepts them, or are dropped because too many wait.
//!
//! The kernel opens a connection before the program knows of it and keeps it in the accept queue of the listening
//! socket. If all workers are in use, or the accepting thread is blocked, the connection stays there. Once the queue is
//! full, the kernel drops further attempts and the client retries them after a second. No span records either wait.
//!
//! The queue length is sampled, so its median over an interval is the number of requests waiting at any time. Each drop
//! adds a second of waiting. The sum is compared with the requests under way: by Little's law, the ratio is the share
//! of the users' time. A burst of connections, as at the start of a load, shows in few readings and does not move the
//! median. Only ports at which the service is known to be called count: an operators' port may go unattended.

use narrows_model::finding::evidence::accept_queue as evidence;
use narrows_model::finding::{Confidence, Finding, FindingKind};
use narrows_model::run::ServiceInstance;
use narrows_model::series::{Series, names};

use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::machine::is_crowded_out;
use crate::read::periods::period_of;
use crate::read::runtimes::{machine_caveats, serves};
use crate::read::time_outside::front;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Share of the requests under way that must wait to be accepted.
    accept_queue_share: f64 = 0.10;
    /// Readings that must show dropped connections.
    accept_queue_drop_readings: usize = 3;
}

/// See the module.
#[derive(Debug)]
pub struct AcceptQueue;

/// Delay before a client retries a dropped attempt, in seconds. Later retries wait as long or longer.
const REPEATED_AFTER_SECONDS: f64 = 1.0;

impl Detector for AcceptQueue {
    fn kind(&self) -> FindingKind {
        FindingKind::AcceptQueue
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let services = reading.trial.service_names().into_iter().filter(|service| serves(reading, service));
        services.filter_map(|service| of_service(self, reading, service)).collect()
    }
}

/// The queue of one port of a replica, in one interval.
struct Queue {
    replica: u32,
    port: u16,
    at: usize,
    queued: f64,
    limit: Option<f64>,
    drops: Option<evidence::Drops>,
}

impl Queue {
    /// Number of requests waiting at any time: queued connections, and dropped attempts until their retry.
    fn waiting(&self) -> f64 {
        self.queued + self.drops.map_or(0.0, |drops| drops.per_second * REPEATED_AFTER_SECONDS)
    }

    fn share(&self, interval: &Interval) -> f64 {
        self.waiting() / interval.in_flight().max(self.waiting()).max(f64::MIN_POSITIVE)
    }
}

/// Returns the finding for the interval where connections wait for the largest share of the time, with the replica
/// where most of them wait.
fn of_service(detector: &AcceptQueue, reading: &Reading<'_>, service: &str) -> Option<Finding> {
    let cpu = Cpu::new(reading);
    let instances: Vec<&ServiceInstance> =
        reading.trial.services.iter().filter(|instance| instance.service == service).collect();
    let waiting_in = |at: usize| -> Vec<Queue> {
        let interval = &reading.intervals[at];
        if interval.rate <= 0.0 || is_crowded_out(reading, at) {
            return Vec::new();
        }
        let queues = instances.iter().filter_map(|instance| longest(reading, instance, at));
        queues.filter(|queue| queue.share(interval) >= reading.thresholds.accept_queue.accept_queue_share).collect()
    };
    let worst =
        |queues: &[Queue]| queues.iter().map(|queue| queue.share(&reading.intervals[queue.at])).fold(0.0, f64::max);
    let found = (0..reading.intervals.len()).map(waiting_in).filter(|queues| !queues.is_empty());
    let heaviest = found.max_by(|a, b| worst(a).total_cmp(&worst(b)))?;
    let counts = (heaviest.len(), instances.len());
    let longest = heaviest.into_iter().max_by(|a, b| a.waiting().total_cmp(&b.waiting()))?;
    Some(finding(detector, &cpu, reading, (service, counts), &longest))
}

/// The port of a replica with the most waiting or dropped connections; `None` if no port has a median queue of 1 or
/// drops in enough readings.
fn longest(reading: &Reading<'_>, instance: &ServiceInstance, at: usize) -> Option<Queue> {
    let (trial, thresholds, interval) = (reading.trial, reading.thresholds, &reading.intervals[at]);
    let of_replica =
        |series: &&Series| series.key.service == instance.service && series.key.replica == instance.replica;
    let queues = trial.series.iter().filter(of_replica).filter(|series| series.key.name == names::ACCEPT_QUEUE);
    let queues = queues.filter_map(|series| {
        let label = series.key.labels.get(names::SERVER_PORT)?;
        let port: u16 = label.parse().ok()?;
        let of_port = |name: &str| {
            let is_it =
                |series: &&Series| series.key.name == name && series.key.labels.get(names::SERVER_PORT) == Some(label);
            trial.series.iter().filter(of_replica).find(is_it)
        };
        let is_called = instance.port == 0 || instance.is_reached_at(port);
        let queued = interval.median_in(series, thresholds).filter(|_| is_called)?;
        let by_socket = of_port(names::ACCEPT_QUEUE_DROPS).map(|series| (series, true));
        let of_network = |series: &&Series| series.key.name == names::LISTEN_OVERFLOWS;
        let by_network = || trial.series.iter().filter(of_replica).find(of_network).map(|series| (series, false));
        let drops =
            by_socket.or_else(by_network).and_then(|(series, is_of_socket)| drops(series, interval, is_of_socket));
        let limit = of_port(names::ACCEPT_QUEUE_LIMIT).and_then(|series| interval.median_in(series, thresholds));
        Some(Queue {
            replica: instance.replica,
            port,
            at,
            queued,
            limit,
            drops: drops.filter(|drops| drops.readings >= thresholds.accept_queue.accept_queue_drop_readings),
        })
    });
    let lasting = queues.filter(|queue| queue.queued >= 1.0 || queue.drops.is_some());
    lasting.max_by(|a, b| a.waiting().total_cmp(&b.waiting()))
}

fn drops(series: &Series, interval: &Interval, is_of_socket: bool) -> Option<evidence::Drops> {
    let here: Vec<f64> =
        series.points.iter().filter(|point| interval.contains(point.time_ns)).map(|point| point.value).collect();
    let per_second = here.iter().sum::<f64>() / here.len().max(1) as f64;
    let readings = here.iter().filter(|dropped| **dropped > 0.0).count();
    (readings > 0).then(|| evidence::Drops { per_second: finite(per_second), readings, is_of_socket })
}

fn finding(
    detector: &AcceptQueue,
    cpu: &Cpu<'_>,
    reading: &Reading<'_>,
    (service, (hot_replicas, replicas)): (&str, (usize, usize)),
    queue: &Queue,
) -> Finding {
    let interval = &reading.intervals[queue.at];
    let timed = front(reading).filter(|front| front.counted.service == service);
    let timed = timed.and_then(|front| front.at(interval, reading.thresholds.time_outside_spans.outside_requests));
    let evidence = evidence::AcceptQueue {
        port: queue.port,
        replica: queue.replica,
        hot_replicas,
        replicas,
        interval: interval.label.clone(),
        load: interval.load_level(),
        under_way: finite(interval.in_flight()),
        queued: finite(queue.queued),
        limit: queue.limit.map(finite),
        drops: queue.drops,
        outside: timed.map(|outside| evidence::Outside {
            client_ns: finite(outside.client_ns),
            span_ns: finite(outside.span_ns),
        }),
        cpu_share: cpu.busy_share(service, interval).map(finite),
    };
    let is_own = queue.queued >= 1.0 || queue.drops.is_some_and(|drops| drops.is_of_socket);
    let is_known_port = reading.trial.reached_at(Some(queue.port)).is_some();
    Finding {
        resource: service.into(),
        cost_share: finite(queue.share(interval)).min(1.0),
        confidence: if is_own && is_known_port { Confidence::High } else { Confidence::Medium },
        caveats: machine_caveats(cpu, interval),
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

#[cfg(test)]
mod tests;
