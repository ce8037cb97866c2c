//! Eyes of an agent: it samples services on its machine and receives their telemetry, and hands both on while a trial that has
//! these services is under way. Otherwise nothing is sampled, and what is received is refused and counted.
//!
//! Records wait in a bounded queue until JetStream has stored them; only then does a sender of OTLP get "accepted". When the queue
//! is full, records of OTLP are refused, so that the sender tries again, and those of the sampler are dropped and counted.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use narrows_model::series::{LogLine, Point, SeriesKey, names};
use narrows_model::trace::Span;
use narrows_sampler::{Sampler, SamplerConfig};
use narrows_telemetry::otlp::{Receiver, Token, Weights};
use narrows_telemetry::{KeptCounts, Receipt, Records, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::Error;
use crate::framing;
use crate::link::Link;
use crate::messages::{Blind, Report, Response, Watch, WatchedReplica};
use crate::subjects;

/// Calls of the sampler and the receiver that wait to be handed on.
const WAITING_MAX: usize = 256;
/// The most calls that are handed on together.
const TOGETHER_MAX: usize = 64;
/// The most records that are handed on together.
const RECORDS_MAX: u64 = 20_000;

/// Services that an agent looks at on its machine.
#[derive(Debug, Clone, Default)]
pub struct EyesOptions {
    /// Processes, with what they start, as services.
    pub pids: Vec<(String, u32)>,
    /// Control groups, as services; of a container too.
    pub cgroups: Vec<(String, PathBuf)>,
    /// Where OTLP is received, with the token that senders show.
    pub otlp: Vec<(SocketAddr, Option<Token>)>,
}

impl EyesOptions {
    /// Replicas that are looked at: those of one service are numbered in the order in which they are given.
    fn replicas(&self) -> Vec<WatchedReplica> {
        let services = self.pids.iter().map(|(service, pid)| (service, *pid));
        let services = services.chain(self.cgroups.iter().map(|(service, _)| (service, 0)));
        let mut replicas: Vec<WatchedReplica> = Vec::new();
        for (service, pid) in services {
            let replica = replicas.iter().filter(|other| other.service == *service).count() as u32;
            replicas.push(WatchedReplica { service: service.clone(), replica, pid });
        }
        replicas
    }
}

/// See the module.
pub(super) struct Eyes {
    options: EyesOptions,
    forward: Arc<Forward>,
    weights: Weights,
    /// Receives until the agent ends.
    _receiver: Option<Receiver>,
    session: Option<Session>,
}

/// A trial that is looked at.
struct Session {
    run: String,
    trial: i64,
    sampler: Sampler,
    reporting: JoinHandle<()>,
    /// Reports that cannot be sent are given up.
    is_over: Arc<AtomicBool>,
}

impl Eyes {
    pub(super) fn open(options: EyesOptions) -> Result<Self, Error> {
        let forward = Arc::new(Forward::default());
        let weights = Weights::default();
        let start = || {
            let store = Arc::clone(&forward) as Arc<dyn Store>;
            Receiver::start_guarded(&options.otlp, store, weights.clone())
        };
        let receiver =
            (!options.otlp.is_empty()).then(start).transpose().map_err(|error| Error::Words(error.to_string()))?;
        Ok(Self { options, forward, weights, _receiver: receiver, session: None })
    }

    /// Services that can be looked at.
    pub(super) fn services(&self) -> Vec<String> {
        let mut services: Vec<String> = self.options.replicas().into_iter().map(|replica| replica.service).collect();
        services.dedup();
        services
    }

    /// Whether it receives telemetry.
    pub(super) fn receives(&self) -> bool {
        !self.options.otlp.is_empty()
    }

    /// The run that is looked at, and its trial.
    pub(super) fn looks_at(&self) -> Option<(&str, i64)> {
        self.session.as_ref().map(|session| (session.run.as_str(), session.trial))
    }

    /// Begins to look.
    pub(super) fn begin(&mut self, watch: Watch, agent: &str, link: &Link) -> Response<Vec<WatchedReplica>> {
        if let Some((run, _)) = self.looks_at() {
            return Err(format!("looks for run {run} already"));
        }
        let replicas = self.options.replicas();
        if replicas.is_empty() {
            return Err("looks at nothing".to_owned());
        }
        let Watch { run, trial, load, tracing, peers } = watch;
        self.weights.set(tracing);
        let (records, waiting) = mpsc::channel(WAITING_MAX);
        self.forward.open(records, &replicas);
        let store = Arc::clone(&self.forward) as Arc<dyn Store>;
        let sampler = Sampler::start(SamplerConfig::default(), store).map_err(|error| error.to_string())?;
        for (replica, at) in replicas.iter().zip(0..) {
            let watched = match self.options.pids.get(at) {
                Some((_, pid)) => sampler.watch(&replica.service, replica.replica, *pid),
                None => {
                    let group = self.options.cgroups.get(at - self.options.pids.len());
                    let path = group.map(|(_, path)| path.clone()).unwrap_or_default();
                    sampler.watch_cgroup(&replica.service, replica.replica, &path)
                }
            };
            watched.map_err(|error| error.to_string())?;
        }
        peers.iter().for_each(|(address, service, replica)| sampler.name_peer(*address, service, *replica));
        let is_over = Arc::new(AtomicBool::new(false));
        let reporter = Reporter {
            link: link.clone(),
            subject: subjects::reports(&run, trial, &format!("eyes-{agent}")),
            load,
            agent: agent.to_owned(),
            forward: Arc::clone(&self.forward),
            is_over: Arc::clone(&is_over),
        };
        let reporting = tokio::spawn(reporter.report_all(waiting));
        self.session = Some(Session { run, trial, sampler, reporting, is_over });
        Ok(replicas)
    }

    /// Stops sampling for a trial, if it is this one. Records that wait are still sent.
    pub(super) fn end(&mut self, run: &str, trial: i64) {
        if self.looks_at() == Some((run, trial)) {
            self.close();
        }
    }

    /// Stops sampling, and gives up records that cannot be sent.
    pub(super) fn give_up(&mut self) {
        if let Some(session) = &self.session {
            session.is_over.store(true, Ordering::Relaxed);
        }
        self.close();
    }

    fn close(&mut self) {
        if let Some(session) = self.session.take() {
            session.sampler.stop();
            self.forward.close();
            // The task ends after it has sent the last records.
            drop(session.reporting);
        }
    }
}

/// Records in the queue, with the sender's receipt.
struct Waiting {
    records: Records,
    told: oneshot::Sender<Result<KeptCounts, StoreError>>,
}

/// Series of this machine that go on, as those of the machine of each replica.
const OF_MACHINE: [&str; 3] = [names::HOST_CPU_COUNT, names::HOST_CPU_UTILIZATION, names::HOST_CPU_STEAL];

/// The way from the sampler and the receiver to the stream of a trial.
#[derive(Default)]
struct Forward {
    to: Mutex<Option<mpsc::Sender<Waiting>>>,
    /// Replicas that are looked at.
    replicas: Mutex<Vec<WatchedReplica>>,
    /// Records that found no room since the trial began.
    dropped: AtomicU64,
}

impl Forward {
    fn open(&self, to: mpsc::Sender<Waiting>, replicas: &[WatchedReplica]) {
        self.dropped.store(0, Ordering::Relaxed);
        *self.replicas.lock().unwrap_or_else(PoisonError::into_inner) = replicas.to_vec();
        *self.to.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
    }

    fn close(&self) {
        *self.to.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn hand_on(&self, mut records: Records) -> Receipt {
        let (told, receipt) = oneshot::channel();
        let count = records.len();
        let to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(to) = to.as_ref() else {
            let _ = told.send(Ok(KeptCounts { over_limit: count, ..KeptCounts::default() }));
            return receipt;
        };
        records.clean();
        if let Err(refused) = to.try_send(Waiting { records, told }) {
            self.dropped.fetch_add(count, Ordering::Relaxed);
            let waiting = match refused {
                mpsc::error::TrySendError::Full(waiting) | mpsc::error::TrySendError::Closed(waiting) => waiting,
            };
            let _ = waiting.told.send(Err(StoreError::Busy));
        }
        receipt
    }
}

impl Store for Forward {
    fn spans(&self, spans: Vec<Span>) -> Receipt {
        self.hand_on(Records { spans, ..Records::default() })
    }

    fn points(&self, mut points: Vec<(SeriesKey, Point)>) -> Receipt {
        let of_machine: Vec<(SeriesKey, Point)> = points
            .extract_if(.., |(key, _)| key.service.is_empty())
            .filter(|(key, _)| OF_MACHINE.contains(&key.name.as_str()))
            .collect();
        for replica in self.replicas.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            points.extend(of_machine.iter().map(|(key, point)| {
                let key = SeriesKey { service: replica.service.clone(), replica: replica.replica, ..key.clone() };
                (key, *point)
            }));
        }
        points.retain(|(key, _)| key.service != names::GENERATOR);
        self.hand_on(Records { points, ..Records::default() })
    }

    fn logs(&self, logs: Vec<LogLine>) -> Receipt {
        self.hand_on(Records { logs, ..Records::default() })
    }
}

/// Hands records on, each until it has arrived.
struct Reporter {
    link: Link,
    subject: String,
    load: i64,
    agent: String,
    forward: Arc<Forward>,
    is_over: Arc<AtomicBool>,
}

impl Reporter {
    async fn report_all(self, mut waiting: mpsc::Receiver<Waiting>) {
        let mut number = 0u64;
        let mut together = Vec::new();
        while waiting.recv_many(&mut together, TOGETHER_MAX).await > 0 {
            let mut records = Records::default();
            let mut told = Vec::with_capacity(together.len());
            for Waiting { records: more, told: tell } in together.drain(..) {
                told.push((more.len(), tell));
                records.append(more);
                if records.len() >= RECORDS_MAX {
                    let report = Report::Seen {
                        load: self.load,
                        agent: self.agent.clone(),
                        records: std::mem::take(&mut records),
                    };
                    self.send(report, &mut number, &mut told).await;
                }
            }
            if !records.is_empty() {
                let report = Report::Seen { load: self.load, agent: self.agent.clone(), records };
                self.send(report, &mut number, &mut told).await;
            }
        }
        let dropped = self.forward.dropped.load(Ordering::Relaxed);
        let blind = Report::Blind(Blind { load: self.load, agent: self.agent.clone(), dropped });
        self.send(blind, &mut number, &mut Vec::new()).await;
    }

    async fn send(
        &self,
        report: Report,
        number: &mut u64,
        told: &mut Vec<(u64, oneshot::Sender<Result<KeptCounts, StoreError>>)>,
    ) {
        *number += 1;
        let id = format!("eyes-{}-{}-{number}", self.agent, self.load);
        let mut is_sent = true;
        match framing::pieces(&report) {
            Ok(pieces) => {
                for (at, piece) in pieces.into_iter().enumerate() {
                    let is_over = || self.is_over.load(Ordering::Relaxed);
                    let sent = self.link.report(&self.subject, &format!("{id}-{at}"), piece, is_over).await;
                    is_sent &= matches!(sent, Ok(Some(_)));
                }
            }
            Err(_) => is_sent = false,
        }
        for (count, tell) in told.drain(..) {
            let result = match is_sent {
                true => Ok(KeptCounts { kept: count, ..KeptCounts::default() }),
                false => Err(StoreError::Busy),
            };
            if !is_sent {
                self.forward.dropped.fetch_add(count, Ordering::Relaxed);
            }
            let _ = tell.send(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(service: &str) -> (SeriesKey, Point) {
        let key = SeriesKey { name: names::CPU_CORES.to_owned(), service: service.to_owned(), ..SeriesKey::default() };
        (key, Point { time_ns: 1, value: 0.5 })
    }

    #[test]
    fn records_are_refused_without_a_trial_and_when_there_is_no_room() {
        let forward = Forward::default();
        let kept = |mut receipt: Receipt| receipt.try_recv().unwrap();
        assert_eq!(kept(forward.points(vec![point("a")])), Ok(KeptCounts { over_limit: 1, ..KeptCounts::default() }));
        let (to, mut waiting) = mpsc::channel(1);
        let replicas = [WatchedReplica { service: "b".to_owned(), replica: 3, pid: 7 }];
        forward.open(to, &replicas);
        let mut utilization = point("");
        utilization.0.name = names::HOST_CPU_UTILIZATION.to_owned();
        let points = vec![point("a"), point(""), utilization.clone(), point(names::GENERATOR)];
        let mut first = forward.points(points);
        assert!(first.try_recv().is_err(), "it is not known yet");
        assert_eq!(kept(forward.points(vec![point("a"), point("b")])), Err(StoreError::Busy));
        assert_eq!(forward.dropped.load(Ordering::Relaxed), 2);
        (utilization.0.service, utilization.0.replica) = ("b".to_owned(), 3);
        assert_eq!(waiting.try_recv().unwrap().records.points, [point("a"), utilization]);
        forward.close();
        assert!(waiting.try_recv().is_err());
    }

    #[test]
    fn replicas_of_a_service_are_numbered() {
        let options = EyesOptions {
            pids: vec![("a".into(), 7), ("b".into(), 8)],
            cgroups: vec![("a".into(), "/x".into())],
            otlp: Vec::new(),
        };
        let replicas: Vec<(String, u32, u32)> =
            options.replicas().into_iter().map(|replica| (replica.service, replica.replica, replica.pid)).collect();
        assert_eq!(replicas, [("a".to_owned(), 0, 7), ("b".to_owned(), 0, 8), ("a".to_owned(), 1, 0)]);
    }
}
