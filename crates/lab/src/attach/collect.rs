//! Collects for a while from a system that runs: what it sends, what its processes use, what its pages of metrics say.
//!
//! The time has one steady window. After it, nothing is sampled any more, but spans are still taken for a moment: those
//! of its last seconds wait in their senders. A signal ends the window and is no failure. What cannot be had from the
//! start (a process, an endpoint, an address to listen on) is an error before anything is kept; what goes missing later
//! is a caveat.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use narrows_model::caveat::{EndpointFault, TrialCaveat};
use narrows_model::run::{ServiceInstance, Window, WindowKind};
use narrows_model::units;
use narrows_sampler::{Sampler, SamplerConfig};
use narrows_telemetry::Store;
use narrows_telemetry::otlp::{Receiver, ReceiverStats, Token, Weights};
use narrows_telemetry::run_file::Recorder;
use narrows_telemetry::scrape::{Endpoint, EndpointStats, Scraper};

use crate::Error;
use crate::attach::processes::ObservedProcess;
use crate::attach::requests::Requests;
use crate::attach::{Observation, TRIAL};
use crate::components::gauges::Poller;
use crate::components::gauges_of;
use crate::counting::RecentRequests;
use crate::environment::now_ns;
use crate::experiment::ServerUrl;
use crate::trial::{socket_gaps, unheard};

/// How often a signal, an end and the processes are looked at.
const POLL: Duration = Duration::from_millis(50);
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Sources to collect from, and for how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run's name.
    pub name: String,
    /// The run file, to be made.
    pub path: PathBuf,
    /// How long.
    pub duration: Duration,
    /// How long after that spans are still taken.
    pub settle: Duration,
    /// From sample to sample, of processes and of pages.
    pub interval: Duration,
    /// Where to listen for OTLP, each with the token that senders have to show there; nowhere when empty.
    pub otlp: Vec<(SocketAddr, Option<Token>)>,
    /// The service that takes the requests, if it is known.
    pub target: Option<String>,
    /// Processes, each with the service it belongs to.
    pub processes: Vec<(String, u32)>,
    /// Control groups, each with the service it belongs to.
    pub cgroups: Vec<(String, PathBuf)>,
    /// Pages of metrics.
    pub endpoints: Vec<Endpoint>,
    /// Database servers to ask about themselves, each with the service it stands for.
    pub servers: Vec<(String, ServerUrl)>,
}

/// Counts so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArrivalCounts {
    /// Spans, by OTLP.
    pub spans: u64,
    /// Metric points, by OTLP.
    pub points: u64,
    /// Log records, by OTLP.
    pub logs: u64,
    /// Requests refused because they did not show the token.
    pub unauthenticated: u64,
    /// Points of pages.
    pub scraped: u64,
    /// Times that a page did not come.
    pub missing_pages: u64,
}

/// Event while it lasts.
#[derive(Debug)]
pub enum Event<'a> {
    /// It collects from now on.
    Began {
        /// The run file.
        path: &'a Path,
        /// Where it listens.
        listening: &'a [SocketAddr],
    },
    /// A second is over.
    Second {
        /// Since the beginning.
        elapsed: Duration,
        /// How long it will last.
        duration: Duration,
        /// Counts since the beginning.
        arrived: &'a ArrivalCounts,
    },
    /// The window is over; the last spans are waited for.
    Settling(Duration),
    /// Something a person should know and that is also kept as a caveat.
    Caveat(&'a TrialCaveat),
}

/// Collects. `stop` ends it early, in order.
///
/// # Errors
/// When there is nothing to collect from, or the run file cannot be written.
pub fn attach(options: &Options, stop: &AtomicBool, tell: &mut dyn FnMut(&Event<'_>)) -> Result<(), Error> {
    let watched = find(&options.processes)?;
    let mut observation = Observation::begin(&options.path, &options.name, "attached", source(options))?;
    let recorder = observation.file.recorder();
    let store: Arc<dyn Store> = Arc::new(recorder.clone());
    let opened = Sources::open(options, &watched, &recorder, &store);
    // Asking pages for the first time may have taken seconds.
    let start_ns = now_ns();
    recorder.fold_between(TRIAL, &[start_ns])?;
    let (target, known) = (options.target.clone(), RecentRequests::of_senders());
    let requests = Arc::new(Requests::before(Arc::clone(&store), start_ns, target, known));
    let listening = opened.and_then(|sources| sources.listen(&options.otlp, Arc::clone(&requests) as Arc<dyn Store>));
    let sources = match listening {
        Ok(sources) => sources,
        Err(error) => {
            observation.discard(&options.path);
            return Err(error);
        }
    };
    tell(&Event::Began { path: &options.path, listening: sources.listening() });
    let ended = follow(options, &sources, &recorder, watched, stop, tell);
    let window = window(start_ns, now_ns());
    let mut caveats = ended;
    caveats.extend(sources.close(options, stop, tell));
    if let Some(failure) = recorder.failure() {
        return Err(failure.into());
    }
    let windows = [window];
    let counted = requests.counted(&windows);
    caveats.push(counted.caveat);
    caveats.iter().for_each(|caveat| tell(&Event::Caveat(caveat)));
    observation.trial.started_ns = Some(start_ns);
    observation.trial.ended_ns = Some(now_ns());
    observation.trial.caveats = caveats;
    observation.complete(&options.path, &windows, counted.seconds)
}

/// The processes, replicas of one service numbered in their order.
fn find(processes: &[(String, u32)]) -> Result<Vec<ObservedProcess>, Error> {
    let replica = |at: usize| processes[..at].iter().filter(|(service, _)| *service == processes[at].0).count() as u32;
    let found = processes.iter().enumerate().map(|(at, (service, pid))| {
        ObservedProcess::find(service, replica(at), *pid)
            .ok_or_else(|| Error::NoProcess { service: service.clone(), pid: *pid })
    });
    found.collect()
}

/// Text in the place of the experiment of other runs: comments, so that nothing is read into it.
fn source(options: &Options) -> String {
    let mut lines = vec![format!("# narrows attach, for {}", units::duration(options.duration.as_nanos() as f64))];
    lines.extend(options.otlp.iter().map(|(address, _)| format!("# OTLP on {address}")));
    lines.extend(options.target.iter().map(|target| format!("# requests taken by {target}")));
    lines.extend(options.processes.iter().map(|(service, pid)| format!("# process {pid}: {service}")));
    lines
        .extend(options.cgroups.iter().map(|(service, path)| format!("# control group {}: {service}", path.display())));
    let page = |endpoint: &Endpoint| {
        format!("# metrics of {}: {}", endpoint.service, without_query(&endpoint.url.to_string()))
    };
    lines.extend(options.endpoints.iter().map(page));
    lines.extend(options.servers.iter().map(|(service, url)| format!("# figures of {service}: {url}")));
    let lines: Vec<String> = lines.iter().map(|line| line.replace(char::is_control, " ")).collect();
    lines.join("\n") + "\n"
}

/// A query may hold a secret.
fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

fn window(start_ns: i64, end_ns: i64) -> Window {
    let label = "as it runs".to_owned();
    Window { index: 0, kind: WindowKind::Steady, label, start_ns, end_ns, drained_ns: None, vus: 0, rate: None }
}

/// Waits for the end, or until the run file cannot be written, and reports progress. Returns a message on what ended
/// meanwhile.
fn follow(
    options: &Options,
    sources: &Sources,
    recorder: &Recorder,
    mut watched: Vec<ObservedProcess>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Event<'_>),
) -> Vec<TrialCaveat> {
    let began = Instant::now();
    let mut reported = Duration::ZERO;
    let mut ended = Vec::new();
    while began.elapsed() < options.duration && !stop.load(Ordering::Relaxed) && recorder.failure().is_none() {
        std::thread::sleep(POLL.min(options.duration.saturating_sub(began.elapsed())));
        let elapsed = began.elapsed();
        if elapsed < reported + TELL_EVERY {
            continue;
        }
        reported = elapsed;
        watched.retain(|process| {
            let is_alive = process.is_alive();
            if !is_alive {
                let (pid, service) = (process.pid, process.service.clone());
                ended.push(TrialCaveat::ProcessEnded { pid, service, after_ns: elapsed.as_nanos() as f64 });
            }
            is_alive
        });
        tell(&Event::Second { elapsed, duration: options.duration, arrived: &sources.arrived() });
    }
    if stop.load(Ordering::Relaxed) {
        let (after_ns, duration_ns) = (began.elapsed().as_nanos() as f64, options.duration.as_nanos() as f64);
        ended.push(TrialCaveat::CollectionEnded { after_ns, duration_ns });
    }
    ended
}

/// Everything that collects.
struct Sources {
    receiver: Option<Receiver>,
    sampler: Sampler,
    scraper: Option<Scraper>,
    pollers: Vec<Poller>,
}

impl Sources {
    fn open(
        options: &Options,
        watched: &[ObservedProcess],
        recorder: &Recorder,
        store: &Arc<dyn Store>,
    ) -> Result<Self, Error> {
        let endpoints = options.endpoints.clone();
        let scraper = match endpoints.is_empty() {
            true => None,
            false => Some(Scraper::start(endpoints, options.interval, Arc::clone(store))?),
        };
        let sampler = Sampler::start(SamplerConfig { interval: options.interval }, Arc::clone(store))?;
        for process in watched {
            sampler.watch(&process.service, process.replica, process.pid)?;
            let instance = ServiceInstance::watched(&process.service, process.replica, process.pid);
            recorder.put_service(TRIAL, &ServiceInstance { command: process.program(), ..instance })?;
        }
        for (at, (service, path)) in options.cgroups.iter().enumerate() {
            let before = options.cgroups[..at].iter().filter(|(other, _)| other == service).count();
            let processes = watched.iter().filter(|process| process.service == *service).count();
            let replica = (before + processes) as u32;
            sampler.watch_cgroup(service, replica, path)?;
            recorder.put_service(TRIAL, &ServiceInstance::watched(service, replica, 0))?;
        }
        let poller =
            |(service, url): &(String, ServerUrl)| Poller::start(service, 0, gauges_of(url), Arc::clone(store));
        let pollers = options.servers.iter().map(poller).collect::<Result<_, _>>()?;
        Ok(Self { receiver: None, sampler, scraper, pollers })
    }

    /// Comes last: what a sender hears is kept must not go with a run that cannot begin.
    fn listen(mut self, addresses: &[(SocketAddr, Option<Token>)], spans: Arc<dyn Store>) -> Result<Self, Error> {
        if !addresses.is_empty() {
            self.receiver = Some(Receiver::start_guarded(addresses, spans, Weights::new())?);
        }
        Ok(self)
    }

    fn listening(&self) -> &[SocketAddr] {
        self.receiver.as_ref().map(Receiver::local_addrs).unwrap_or_default()
    }

    fn arrived(&self) -> ArrivalCounts {
        let otlp = self.receiver.as_ref().map(Receiver::stats).unwrap_or_default();
        let pages = self.scraper.as_ref().map(Scraper::stats).unwrap_or_default();
        ArrivalCounts {
            spans: otlp.spans,
            points: otlp.points,
            logs: otlp.logs,
            unauthenticated: otlp.unauthenticated_requests,
            scraped: pages.iter().map(|page| page.points).sum(),
            missing_pages: pages.iter().map(|page| page.failures).sum(),
        }
    }

    /// Ends sampling, waits for the last spans, ends listening. Returns what went wrong.
    fn close(self, options: &Options, stop: &AtomicBool, tell: &mut dyn FnMut(&Event<'_>)) -> Vec<TrialCaveat> {
        let sampled = self.sampler.stop();
        let mut caveats: Vec<TrialCaveat> =
            self.scraper.map(Scraper::stop).unwrap_or_default().iter().flat_map(missing_pages).collect();
        caveats.extend(self.pollers.into_iter().filter_map(Poller::finish));
        if sampled.refused > 0 {
            caveats.push(TrialCaveat::ReadingsLost { readings: sampled.refused });
        }
        caveats.extend(socket_gaps(sampled.sockets));
        let Some(receiver) = self.receiver else { return caveats };
        // With a signal there may be a person who waits; what senders hold back is still worth a moment.
        let settle = if receiver.stats().spans > 0 { options.settle } else { Duration::ZERO };
        if !settle.is_zero() {
            tell(&Event::Settling(settle));
            let was_stopped = stop.load(Ordering::Relaxed);
            let began = Instant::now();
            while began.elapsed() < settle && stop.load(Ordering::Relaxed) == was_stopped {
                std::thread::sleep(POLL.min(settle.saturating_sub(began.elapsed())));
            }
        }
        let listening: Vec<String> = receiver.local_addrs().iter().map(ToString::to_string).collect();
        let stats = receiver.stop();
        caveats.extend(unheard(ReceiverStats::default(), stats, false));
        if stats.refused > 0 {
            caveats.push(TrialCaveat::TelemetryOverLimit { records: stats.refused });
        }
        if stats.batches == 0 && stats.unauthenticated_requests == 0 {
            caveats.push(TrialCaveat::NothingSent { listening });
        }
        caveats
    }
}

/// Caveats of a page of metrics that was not read in full.
pub(crate) fn missing_pages(stats: &EndpointStats) -> Vec<TrialCaveat> {
    let url = without_query(&stats.url);
    let (failed, scrapes) = (stats.failures, stats.failures + stats.pages);
    let failure = stats.failure.clone();
    let scrapes = failure.map(|failure| EndpointFault::Scrapes { failed, scrapes, failure });
    let malformed = stats.malformed;
    let lines = stats.complaint.clone().map(|first| EndpointFault::Lines { malformed, first });
    let points = (stats.refused > 0).then_some(EndpointFault::Points { refused: stats.refused });
    let faults = [scrapes, lines, points].into_iter().flatten();
    faults.map(|fault| TrialCaveat::Endpoint { url: url.to_string(), fault }).collect()
}
