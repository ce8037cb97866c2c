//! One trial: start the services, wait until they are ready, put them under load, stop them.
//!
//! `services` knows how replicas begin and end, `under_load` what happens in between, `lives` what becomes of a replica
//! that ends by itself meanwhile. What is done while they are up is a [`Work`]: the experiment's load, or a search for
//! the capacity. Everything runs on the thread of the run.

mod command_load;
mod early_end;
mod faults;
mod k6_summary;
mod recovery;
mod replica_end;
mod replica_state;
mod root_spans;
mod services;
mod under_load;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use narrows_model::caveat::{SocketGap, TrialCaveat};
use narrows_model::load::{LoadPlan, Template};
use narrows_model::run::Trial;
use narrows_sampler::{Sampler, SocketGaps};
use narrows_telemetry::Store;
use narrows_telemetry::otlp::{Receiver, ReceiverStats, Token, Weights};
use narrows_telemetry::run_file::Recorder;
use narrows_telemetry::scrape::Scraper;

use crate::Error;
use crate::adoption::AdoptedChildren;
use crate::agents::Agents;
use crate::attach::missing_pages;
use crate::cluster::{Cluster, Found};
use crate::components::gauges::Poller;
use crate::components::sidecar;
use crate::containers::Project;
use crate::experiment::{
    Bindings, BoundCluster, BoundCommand, BoundLoad, BoundTrial, Experiment, Fault, Host, HostPort, Replica,
    ReplicaPorts, Start, Variant,
};
use crate::guard::{Guard, kill_marked};
use crate::leftovers::PREFIX;
use crate::ports::Ports;
use crate::progress::{Event, Progress};
use crate::resolve::resolve;
use crate::setup::Setups;
pub(crate) use faults::Faults;
pub(crate) use root_spans::Roots;
pub(crate) use services::RunningReplica;
use services::elsewhere;
pub(crate) use under_load::{FinishedLoad, Onward};

/// How long services are asked to collect spans before they send them.
const SPAN_BATCH_DELAY: Duration = Duration::from_millis(500);
/// How often pages of metrics are read.
const SCRAPE_INTERVAL: Duration = Duration::from_secs(1);
const SPAN_GRACE: Duration = Duration::from_millis(500);
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// Work of each trial while its services are up.
pub(crate) trait Work {
    /// Sends load to the services and waits for its end. `load` is the experiment's, its targets known.
    fn work(
        &mut self,
        bench: &mut Bench<'_>,
        load: LoadPlan,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<(), Error>;

    /// As [`Self::work`], where another program sends the load.
    fn command(
        &mut self,
        bench: &mut Bench<'_>,
        command: &BoundCommand,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<(), Error>;

    /// Looks at a trial that was made, and says whether the next one is still needed.
    fn after(&mut self, _path: &Path, _trial: &Trial, _progress: &mut dyn Progress) -> Result<Next, Error> {
        Ok(Next::Trial)
    }

    /// Keeps what the run as a whole showed, beside what is always concluded.
    fn conclude(&self, _: &Recorder) -> Result<(), Error> {
        Ok(())
    }
}

/// Steps after a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next one that is planned.
    Trial,
    /// The end of the run.
    Enough,
}

/// The experiment's own load, as it is planned.
#[derive(Debug)]
pub(crate) struct PlannedLoad;

impl Work for PlannedLoad {
    fn work(
        &mut self,
        bench: &mut Bench<'_>,
        load: LoadPlan,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        bench.load(load, trial, running, progress)
    }

    fn command(
        &mut self,
        bench: &mut Bench<'_>,
        command: &BoundCommand,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        bench.load_by_command(command, trial, running, progress)
    }
}

/// State that every trial of a run shares.
pub(crate) struct Bench<'a> {
    pub(crate) experiment: &'a Experiment,
    /// Names what this process starts and makes, and nothing that an earlier process of the same run did: what is left
    /// of that may still be being removed.
    pub(crate) mark: String,
    pub(crate) seed: u64,
    pub(crate) time_scale: f64,
    pub(crate) receiver: &'a Receiver,
    pub(crate) recorder: Recorder,
    pub(crate) store: Arc<dyn Store>,
    /// Counts requests from spans, in trials whose load another program sends.
    pub(crate) roots: Arc<Roots>,
    pub(crate) weights: Weights,
    pub(crate) sampler: &'a Sampler,
    pub(crate) guard: Guard,
    pub(crate) adopted: AdoptedChildren,
    pub(crate) ports: Ports,
    pub(crate) setups: Setups,
    /// Containers of the trial under way.
    pub(crate) containers: Option<Project>,
    /// Deployments that the trials so far have changed, as they were before.
    pub(crate) deployments: Found,
    /// Those of the trial under way, until its load begins.
    pub(crate) planned_faults: Vec<Fault>,
    /// Those of the load under way.
    pub(crate) faults: Faults,
    /// Agents that send the load; this process without.
    pub(crate) agents: Option<Agents>,
    /// Replicas of the trial that somebody else has started, by their addresses.
    pub(crate) elsewhere: Vec<(SocketAddr, String, u32)>,
    pub(crate) stop: &'a AtomicBool,
}

impl Bench<'_> {
    /// Makes one trial; what is learnt about it (validity, caveats) is written into `trial`.
    /// Whatever happens, nothing of the trial is left running.
    pub(crate) fn trial(
        &mut self,
        variant: &Variant,
        trial: &mut Trial,
        work: &mut dyn Work,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let folder = self.scratch_folder(trial.id)?;
        let heard_before = self.receiver.stats();
        let mut running = Vec::new();
        self.elsewhere.clear();
        let result = self.start_and_load(variant, trial, &folder, &mut running, work, progress);
        progress.tell(&Event::Stopping);
        if result.is_ok() {
            self.await_last_spans();
        }
        let sockets = self.sampler.stats().sockets;
        self.sampler.unwatch_all();
        self.stop_all(running, trial);
        let removed = self.containers.take().map_or(Ok(()), |project| project.down(&mut self.guard));
        kill_marked(&self.mark);
        let ended = self.adopted.end_all(&mut self.guard);
        self.ports.release_all();
        trial.caveats.extend(socket_gaps(sockets));
        trial.caveats.extend(unheard(heard_before, self.receiver.stats(), true));
        trial.caveats.extend(self.nothing_sent(heard_before));
        let counted = self.keep_requests_of_spans(trial, progress);
        let _ = std::fs::remove_dir_all(&folder);
        // A stop that was hurried may have cost spans, so the trial is not whole.
        result.and(ended).and(removed).and(counted).and_then(|()| self.go_on())
    }

    /// Errors once a signal came.
    pub(crate) fn go_on(&self) -> Result<(), Error> {
        signalled(self.stop)
    }

    /// A folder that is a trial's alone, while it lasts.
    fn scratch_path(&self, trial: i64) -> PathBuf {
        std::env::temp_dir().join(format!("{PREFIX}{}-{trial}", self.mark))
    }

    fn scratch_folder(&mut self, trial: i64) -> Result<PathBuf, Error> {
        let path = self.scratch_path(trial);
        self.guard.add_folder(&path)?;
        std::fs::create_dir_all(&path).map_err(|source| Error::File { what: "create", path: path.clone(), source })?;
        Ok(path)
    }

    fn start_and_load(
        &mut self,
        variant: &Variant,
        trial: &mut Trial,
        folder: &Path,
        running: &mut Vec<RunningReplica>,
        work: &mut dyn Work,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let BoundTrial { compose, services, mut load, faults, cluster, observed } = self.bind(variant, folder)?;
        let target = services.iter().find(|service| self.experiment.load.target.as_ref() == Some(&service.name));
        if let (BoundLoad::Plan(plan), Some(target)) = (&mut load, target)
            && let Some(token) = target.start.token().map_err(Error::ServiceToken)?
        {
            present(plan, &token);
        }
        self.planned_faults = faults;
        self.look_for_programs(&services, folder)?;
        sidecar::certify(&services, folder)?;
        if let Some(compose) = compose {
            self.start_containers(&compose, trial.id, folder, progress)?;
        }
        let cluster = cluster.map(|bound| self.attach_cluster(bound)).transpose()?;
        let elsewhere = elsewhere(&services);
        for service in services {
            if matches!(service.start, Start::Elsewhere { .. }) {
                self.await_elsewhere(&service, running, progress)?;
                continue;
            }
            if let Some(companion) = sidecar::companion(&service, folder)? {
                running.push(self.start(companion, folder, trial, progress)?);
                self.await_ready(running, folder)?;
            }
            let replica = self.start(service, folder, trial, progress)?;
            running.push(replica);
            self.await_ready(running, folder)?;
            if let Some(replica) = running.last() {
                self.once_ready(replica, folder, progress)?;
            }
        }
        self.watch(running)?;
        let contained = self.watch_containers(trial.id)?;
        let is_contained = |caveat: &TrialCaveat| match caveat {
            TrialCaveat::ServiceElsewhere { service, .. } => contained.contains(service),
            _ => false,
        };
        for caveat in elsewhere.into_iter().filter(|caveat| !is_contained(caveat)) {
            progress.note(trial, caveat);
        }
        for caveat in cluster.iter().flat_map(Cluster::workloads) {
            // A service with `address` may be one of them.
            if !trial.caveats.iter().any(|known| known.is_alike(&caveat)) {
                progress.note(trial, caveat);
            }
        }
        let pollers = self.start_pollers(running, &observed, folder)?;
        let scraper = self.start_scraper(cluster.as_ref())?;
        let result = self.put_under_load(load, trial, running, work, progress);
        trial.caveats.extend(pollers.into_iter().filter_map(Poller::finish));
        trial.caveats.extend(scraper.map(Scraper::stop).unwrap_or_default().iter().flat_map(missing_pages));
        if let (Ok(()), Some(cluster)) = (&result, &cluster) {
            trial.caveats.extend(cluster.changes()?);
        }
        result
    }

    /// Brings the system in a cluster into the state of a variant.
    fn attach_cluster(&mut self, bound: BoundCluster) -> Result<Cluster, Error> {
        let stop = self.stop;
        Cluster::attach(bound, &mut self.deployments, &mut || signalled(stop))
    }

    /// Begins to read the experiment's pages of metrics, if it has any.
    fn start_scraper(&self, cluster: Option<&Cluster>) -> Result<Option<Scraper>, Error> {
        let mut pages = self.experiment.telemetry.pages.clone();
        pages.extend(cluster.map(Cluster::pages).unwrap_or_default());
        let start = || Scraper::start(pages.clone(), SCRAPE_INTERVAL, Arc::clone(&self.store));
        Ok((!pages.is_empty()).then(start).transpose()?)
    }

    fn put_under_load(
        &mut self,
        load: BoundLoad,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        work: &mut dyn Work,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        match load {
            BoundLoad::Plan(mut plan) => {
                plan.targets = self.targets(&plan, running)?;
                work.work(self, plan, trial, running, progress)
            }
            BoundLoad::Command(command) => work.command(self, &command, trial, running, progress),
        }
    }

    fn bind(&mut self, variant: &Variant, folder: &Path) -> Result<BoundTrial, Error> {
        let mut ports = Vec::new();
        for Replica { service, replica, port, elsewhere, further } in
            self.experiment.replicas(variant).map_err(Error::Experiment)?
        {
            let (host, port) = match (elsewhere, port) {
                (Some(place), _) => (host_of(&place, &service)?, place.port),
                (None, Some(port)) => (Host::loopback(), self.ports.claim(port, &service)?),
                (None, None) => (Host::loopback(), self.ports.take()?),
            };
            let further = (0..further).map(|_| self.ports.take()).collect::<Result<_, _>>()?;
            ports.push(ReplicaPorts { service, replica, host, port, further });
        }
        let bindings = Bindings {
            ports,
            otlp_endpoint: self.otlp_endpoint(),
            trial_dir: folder.to_owned(),
            seed: self.seed,
            time_scale: self.time_scale,
        };
        self.experiment.bind(variant, &bindings).map_err(Error::Experiment)
    }

    /// The caveat that nobody has sent anything since a count, if somebody else's services were listened for.
    fn nothing_sent(&self, before: ReceiverStats) -> Option<TrialCaveat> {
        let [_, address] = self.receiver.local_addrs() else { return None };
        let after = self.receiver.stats();
        let is_silent =
            (before.batches, before.unauthenticated_requests) == (after.batches, after.unauthenticated_requests);
        is_silent.then(|| TrialCaveat::NothingSent { listening: vec![address.to_string()] })
    }

    fn otlp_endpoint(&self) -> String {
        format!("http://{}", self.receiver.local_addr())
    }

    /// Gives services the time to send what they batch: many end without flushing when asked to end.
    fn await_last_spans(&self) {
        let end = Instant::now() + (SPAN_BATCH_DELAY + SPAN_GRACE).max(self.experiment.telemetry.settle);
        while Instant::now() < end && self.go_on().is_ok() {
            std::thread::sleep(WATCH_INTERVAL);
        }
    }
}

/// Has each request that presents nothing present a token.
fn present(plan: &mut LoadPlan, token: &Token) {
    let flows = plan.scenarios.iter_mut().flat_map(|scenario| &mut scenario.flows);
    for step in flows.flat_map(|flow| &mut flow.steps) {
        let headers = &mut step.request.headers;
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            headers.push(("Authorization".to_owned(), Template::text(format!("Bearer {}", token.secret()))));
        }
    }
}

/// The machine of a service that somebody else has started.
fn host_of(place: &HostPort, service: &str) -> Result<Host, Error> {
    let unknown = |reason| Error::UnknownHost { service: service.to_owned(), place: place.to_string(), reason };
    let address = resolve(&place.to_string()).map_err(unknown)?.ip();
    Ok(Host { name: place.host.clone(), address })
}

/// Telemetry that did not reach the run file between two counts. `is_load_traced` if the load decides what is traced.
pub(crate) fn unheard(before: ReceiverStats, after: ReceiverStats, is_load_traced: bool) -> Vec<TrialCaveat> {
    let malformed = after.malformed_requests - before.malformed_requests;
    let unauthenticated = after.unauthenticated_requests - before.unauthenticated_requests;
    let rejected = after.unserved_requests - before.unserved_requests;
    let invalid = after.malformed_records - before.malformed_records;
    let malformed = (malformed > 0).then_some(TrialCaveat::TelemetryMalformed { requests: malformed });
    let unauthenticated =
        (unauthenticated > 0).then_some(TrialCaveat::TelemetryUnauthenticated { requests: unauthenticated });
    let rejected = (rejected > 0).then_some(TrialCaveat::TelemetryRejected { requests: rejected, is_load_traced });
    let invalid = (invalid > 0).then_some(TrialCaveat::TelemetryInvalid { records: invalid });
    [malformed, unauthenticated, rejected, invalid].into_iter().flatten().collect()
}

/// A caveat for each kind of gap in the samples of sockets.
pub(crate) fn socket_gaps(gaps: SocketGaps) -> Vec<TrialCaveat> {
    let some = |count: u64, gap: fn(u64) -> SocketGap| (count > 0).then(|| gap(count));
    let gaps = [
        gaps.without_diagnostics.then_some(SocketGap::NoDiagnostics),
        some(gaps.namespaces, SocketGap::Namespaces),
        some(gaps.connections, SocketGap::Connections),
        some(gaps.unix_connections, SocketGap::UnixSockets),
    ];
    gaps.into_iter().flatten().map(|gap| TrialCaveat::SocketsNotSampled { gap }).collect()
}

fn signalled(stop: &AtomicBool) -> Result<(), Error> {
    if stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gap_in_the_samples_of_sockets_is_a_caveat() {
        assert_eq!(socket_gaps(SocketGaps::default()), []);
        let gaps = SocketGaps { without_diagnostics: true, unix_connections: 8, ..SocketGaps::default() };
        let expected = [SocketGap::NoDiagnostics, SocketGap::UnixSockets(8)];
        assert_eq!(socket_gaps(gaps), expected.map(|gap| TrialCaveat::SocketsNotSampled { gap }));
    }

    #[test]
    fn only_what_went_wrong_in_the_trial_is_said() {
        let before = ReceiverStats { malformed_requests: 3, ..ReceiverStats::default() };
        assert_eq!(unheard(before, before, true), []);
        let refused = ReceiverStats { unauthenticated_requests: 4, ..before };
        assert_eq!(unheard(before, refused, true), [TrialCaveat::TelemetryUnauthenticated { requests: 4 }]);
        let after = ReceiverStats { malformed_requests: 5, unserved_requests: 1, malformed_records: 7, ..before };
        let expected = [
            TrialCaveat::TelemetryMalformed { requests: 2 },
            TrialCaveat::TelemetryRejected { requests: 1, is_load_traced: true },
            TrialCaveat::TelemetryInvalid { records: 7 },
        ];
        assert_eq!(unheard(before, after, true), expected);
    }
}
