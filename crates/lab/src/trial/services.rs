//! How the replicas of a trial begin and end.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use narrows_model::caveat::TrialCaveat;
use narrows_model::load::LoadPlan;
use narrows_model::run::{Machine, ServiceInstance, Trial, sidecar_name};

use crate::Error;
use crate::cgroup::{Cgroup, Limits};
use crate::components::gauges::Poller;
use crate::components::process::{Process, ProcessEnd, Spec};
use crate::components::workshop::Workshop;
use crate::components::{Launch, Place, gauges_of, readiness, sidecar};
use crate::containers::{self, Container, OtlpAddress, Project};
use crate::experiment::{BoundCompose, BoundService, Ready, ServerUrl, Start};
use crate::leftovers::PREFIX;
use crate::processes::name_of;
use crate::progress::{Event, Progress};
use crate::resolve::resolve;
use crate::trial::{Bench, SPAN_BATCH_DELAY, signalled};

const HURRIED_STOP: Duration = Duration::from_secs(2);

/// A running replica and how to end it.
pub(crate) struct RunningReplica {
    pub(super) process: Process,
    pub(super) service: BoundService,
    /// How it was started.
    pub(super) launch: Launch,
    /// Whether it is up.
    pub(super) life: Life,
}

/// Whether a replica is up.
pub(crate) enum Life {
    /// It runs, as far as anyone has seen.
    Up,
    /// It was made to end, and is killed at the deadline.
    Leaving { deadline: Instant, then: Then },
    /// It has ended and is to be started again.
    Starting(PendingStart),
    /// It has ended and stays so.
    Down,
}

/// Next state of a replica that was made to end.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    /// It is started again after a pause.
    Start(Duration),
    /// Nothing.
    StayDown,
}

/// A start that is due after a pause.
pub(crate) struct PendingStart {
    pub(super) due: Instant,
    /// End of the replica that makes the start necessary; `None` if it was planned.
    pub(super) end: Option<UnplannedEnd>,
}

/// Unplanned end of a replica.
pub(crate) struct UnplannedEnd {
    /// As in `ended by signal 9`.
    pub(super) how: String,
    /// Time from the beginning of the load, nanoseconds.
    pub(super) after_ns: f64,
}

impl UnplannedEnd {
    /// Caveat on the end of a replica.
    pub(super) fn caveat(&self, replica: &RunningReplica, is_restarted: bool) -> TrialCaveat {
        TrialCaveat::ReplicaEnded {
            replica: replica.process.name().to_owned(),
            end: self.how.clone(),
            after_ns: self.after_ns,
            is_restarted,
        }
    }
}

impl Life {
    /// To be started again at a time.
    pub(super) fn starting(due: Instant, end: Option<UnplannedEnd>) -> Self {
        Self::Starting(PendingStart { due, end })
    }
}

impl Bench<'_> {
    /// Errors when a program that a component or a sidecar needs is not on this machine.
    pub(super) fn look_for_programs(&self, services: &[BoundService], folder: &Path) -> Result<(), Error> {
        for place in services.iter().filter_map(|service| Place::of(service, folder)) {
            for program in place.component.programs() {
                place.find(program)?;
            }
        }
        services.iter().try_for_each(sidecar::look_for_program)
    }

    /// Starts a replica, after its service's setup if that is still to be done. `folder` is the trial's.
    pub(super) fn start(
        &mut self,
        service: BoundService,
        folder: &Path,
        trial: &mut Trial,
        progress: &mut dyn Progress,
    ) -> Result<RunningReplica, Error> {
        let env = self.environment(&service);
        let mut workshop =
            Workshop { mark: &self.mark, store: &self.store, guard: &mut self.guard, stop: self.stop, progress };
        self.setups.ensure(&service, &env, &mut workshop)?;
        workshop.progress.tell(&Event::Starting { service: &service.name, replica: service.replica });
        let launch = match &service.start {
            Start::Run { command, ready } => of_command(&service, command, ready),
            Start::Component { settings, siblings } => {
                let place = Place::new(&service, settings, siblings, folder);
                place.component.settings().prepare(&place, &mut workshop)?
            }
            Start::Elsewhere { place, .. } => unreachable!("`{place}` is not started here"),
        };
        self.spawn(service, launch, trial, progress)
    }

    /// Starts a replica again that has ended: in the same folder, on the same port.
    pub(super) fn start_again(
        &mut self,
        replica: &RunningReplica,
        trial: &mut Trial,
        progress: &mut dyn Progress,
    ) -> Result<RunningReplica, Error> {
        let folder = self.scratch_path(trial.id);
        let again = |place: Place<'_>| place.component.settings().again(&place, &replica.launch);
        let launch = Place::of(&replica.service, &folder).map_or_else(|| replica.launch.clone(), again);
        progress.tell(&Event::Starting { service: &replica.service.name, replica: replica.service.replica });
        self.spawn(replica.service.clone(), launch, trial, progress)
    }

    fn spawn(
        &mut self,
        service: BoundService,
        launch: Launch,
        trial: &mut Trial,
        progress: &mut dyn Progress,
    ) -> Result<RunningReplica, Error> {
        let (cgroup, limits) = self.cap(&service, trial, progress);
        let own = self.environment(&service);
        let spec = Spec {
            service: service.name.clone(),
            replica: service.replica,
            command: launch.command.clone(),
            cwd: launch.cwd.clone(),
            env: launch.env.iter().cloned().chain(own).collect(),
            account: launch.account,
            wanted_line: match &launch.ready {
                Ready::Log { text } => Some(text.clone()),
                _ => None,
            },
        };
        let process = Process::start(&spec, cgroup, &self.mark, &self.store, &mut self.guard)?;
        let instance = ServiceInstance {
            service: service.name.clone(),
            replica: service.replica,
            pid: process.pid(),
            port: service.port,
            command: spec.command,
            cpu_limit_cores: limits.cpus,
            memory_limit_bytes: limits.memory_bytes,
            stand_in_ports: service.stand_in_ports.clone(),
            machine: Machine::Here,
        };
        self.recorder.put_service(trial.id, &instance)?;
        Ok(RunningReplica { process, service, launch, life: Life::Up })
    }

    /// Does what a component can only do now that the replica is ready.
    pub(super) fn once_ready(
        &mut self,
        replica: &RunningReplica,
        folder: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let Some(place) = Place::of(&replica.service, folder) else { return Ok(()) };
        let mut workshop =
            Workshop { mark: &self.mark, store: &self.store, guard: &mut self.guard, stop: self.stop, progress };
        place.component.settings().once_ready(&place, &mut workshop)
    }

    /// Begins to ask the components, and servers that others started, about themselves.
    pub(super) fn start_pollers(
        &self,
        running: &[RunningReplica],
        observed: &BTreeMap<String, ServerUrl>,
        folder: &Path,
    ) -> Result<Vec<Poller>, Error> {
        let mut pollers = Vec::new();
        for place in running.iter().filter_map(|replica| Place::of(&replica.service, folder)) {
            let Some(gauges) = place.component.settings().gauges(&place) else { continue };
            let (name, replica) = (&place.service.name, place.service.replica);
            pollers.push(Poller::start(name, replica, gauges, Arc::clone(&self.store))?);
        }
        for service in running.iter().map(|replica| &replica.service) {
            let Some(gauges) = sidecar::gauges(service, folder) else { continue };
            let name = sidecar_name(&service.name);
            pollers.push(Poller::start(&name, service.replica, gauges, Arc::clone(&self.store))?);
        }
        for (name, url) in observed {
            pollers.push(Poller::start(name, 0, gauges_of(url), Arc::clone(&self.store))?);
        }
        Ok(pollers)
    }

    /// The caps that are in force, and the control group that holds them. A cap that cannot be set is a caveat.
    fn cap(
        &mut self,
        service: &BoundService,
        trial: &mut Trial,
        progress: &mut dyn Progress,
    ) -> (Option<Cgroup>, Limits) {
        let limits = Limits { cpus: service.cpus, memory_bytes: service.memory_bytes };
        if limits.is_none() {
            return (None, Limits::default());
        }
        let name = format!("{PREFIX}{}-{}-{}", self.mark, service.name, service.replica);
        let guard = &mut self.guard;
        match Cgroup::create(&name, limits, |path| drop(guard.add_cgroup(path))) {
            Ok(cgroup) => (Some(cgroup), limits),
            Err(reason) => {
                let caveat = TrialCaveat::WithoutCaps { service: service.name.clone(), reason: reason.to_string() };
                if !trial.caveats.contains(&caveat) {
                    progress.note(trial, caveat);
                }
                (None, Limits::default())
            }
        }
    }

    /// Where telemetry goes and who is speaking; the experiment's own values win.
    fn environment(&self, service: &BoundService) -> Vec<(String, String)> {
        let attributes = format!("narrows.replica={0},service.instance.id={1}-{0}", service.replica, service.name);
        let defaults = [
            ("PORT", service.port.to_string()),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", self.otlp_endpoint()),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf".to_owned()),
            ("OTEL_SERVICE_NAME", service.name.clone()),
            ("OTEL_RESOURCE_ATTRIBUTES", attributes),
            ("OTEL_TRACES_EXPORTER", "otlp".to_owned()),
            ("OTEL_METRICS_EXPORTER", "otlp".to_owned()),
            ("OTEL_LOGS_EXPORTER", "otlp".to_owned()),
            ("OTEL_METRIC_EXPORT_INTERVAL", "5000".to_owned()),
            ("OTEL_BSP_SCHEDULE_DELAY", SPAN_BATCH_DELAY.as_millis().to_string()),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "16384".to_owned()),
        ];
        let mut env: Vec<(String, String)> =
            defaults.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        env.extend(service.env.iter().cloned());
        env
    }

    /// Waits for the replica that was started last, with an eye on the others. `folder` is the trial's.
    pub(super) fn await_ready(&mut self, running: &mut [RunningReplica], folder: &Path) -> Result<(), Error> {
        let started = pids(running);
        let Some((last, earlier)) = running.split_last_mut() else { return Ok(()) };
        let mut meanwhile = || {
            self.adopted.look(&started, &mut self.guard)?;
            no_death(earlier, "while another service was being started")?;
            signalled(self.stop)
        };
        let (service, launch) = (&last.service, &last.launch);
        let place = Place::of(service, folder);
        let probe = |process: &Process| {
            readiness::probe(process, &launch.ready, service.port)?;
            place.as_ref().map_or(Ok(()), |place| place.component.settings().is_usable(place))
        };
        let port = matches!(service.start, Start::Run { .. }).then_some(service.port);
        readiness::wait(&mut last.process, port, &probe, service.ready_timeout, &mut meanwhile)
    }

    /// Waits for a replica that somebody else has started, with an eye on those that run here.
    pub(super) fn await_elsewhere(
        &mut self,
        service: &BoundService,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let Start::Elsewhere { place, address, ready, .. } = &service.start else { return Ok(()) };
        self.sampler.name_peer(*address, &service.name, service.replica);
        self.elsewhere.push((*address, service.name.clone(), service.replica));
        progress.tell(&Event::Awaiting { service: &service.name, place: &place.to_string() });
        let started = pids(running);
        let mut meanwhile = || {
            self.adopted.look(&started, &mut self.guard)?;
            no_death(running, "while another service was being waited for")?;
            signalled(self.stop)
        };
        let token = service.start.token().map_err(Error::ServiceToken)?;
        let responded =
            readiness::wait_elsewhere(*address, ready, token.as_ref(), service.ready_timeout, &mut meanwhile)?;
        responded.map_err(|problem| {
            let error = Error::NotReachable {
                service: service.name.clone(),
                place: place.to_string(),
                waited: service.ready_timeout,
                problem,
            };
            match &self.containers {
                Some(project) if project.services().contains(&service.name) => {
                    Error::Container { problem: error.to_string(), last_lines: project.last_lines(&service.name) }
                }
                _ => error,
            }
        })
    }

    /// Starts the containers of a Compose file.
    pub(super) fn start_containers(
        &mut self,
        compose: &BoundCompose,
        trial: i64,
        folder: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let project = format!("{PREFIX}{}-{trial}", self.mark);
        let listen = self.experiment.telemetry.listen()?;
        let token = listen.as_ref().and_then(|listen| listen.token()).map(|token| token.secret().to_owned());
        let otlp = match self.receiver.local_addrs() {
            [_, address] => Some(OtlpAddress { address: *address, token: token.as_deref() }),
            _ => None,
        };
        let shown = compose.file.to_string_lossy();
        progress.tell(&Event::SettingUp { service: containers::NAME, command: &shown });
        let mut workshop =
            Workshop { mark: &self.mark, store: &self.store, guard: &mut self.guard, stop: self.stop, progress };
        self.containers = Some(Project::up(compose, project, folder, otlp, &mut workshop)?);
        Ok(())
    }

    /// Samples the trial's containers by their control groups, and returns their services.
    pub(super) fn watch_containers(&self, trial: i64) -> Result<Vec<String>, Error> {
        let containers = self.containers.as_ref().map_or(Ok(Vec::new()), Project::containers)?;
        for Container { service, replica, pid } in &containers {
            match containers::control_group(*pid) {
                Some(group) => self.sampler.watch_cgroup(service, *replica, &group)?,
                None => self.sampler.watch(service, *replica, *pid)?,
            }
            let instance = ServiceInstance::watched(service, *replica, *pid);
            self.recorder.put_service(trial, &ServiceInstance { command: containers::program(*pid), ..instance })?;
        }
        Ok(containers.into_iter().map(|container| container.service).collect())
    }

    pub(super) fn watch(&self, running: &[RunningReplica]) -> Result<(), Error> {
        running.iter().try_for_each(|replica| self.watch_one(replica))
    }

    pub(super) fn watch_one(&self, replica: &RunningReplica) -> Result<(), Error> {
        Ok(self.sampler.watch(&replica.service.name, replica.service.replica, replica.process.pid())?)
    }

    /// The addresses of the target's replicas, or of the URL.
    pub(super) fn targets(&self, load: &LoadPlan, running: &[RunningReplica]) -> Result<Vec<SocketAddr>, Error> {
        if !load.targets.is_empty() {
            return Ok(load.targets.clone());
        }
        let target = self.experiment.load.target.as_deref().unwrap_or_default();
        let of_service: Vec<SocketAddr> = running
            .iter()
            .filter(|replica| replica.service.name == target)
            .map(|replica| SocketAddr::from((Ipv4Addr::LOCALHOST, replica.service.advertised_port())))
            .collect();
        if !of_service.is_empty() {
            return Ok(of_service);
        }
        let wrong = |reason| Error::Target { target: target.to_owned(), reason };
        // The experiment's check has seen that it is a URL.
        let authority = self.experiment.load.authority().ok_or_else(|| wrong("it is not an address".to_owned()))?;
        let address = resolve(&authority).map_err(wrong)?;
        Ok(vec![address])
    }

    /// Stops the replicas, last started first, so that callers end before those they call.
    pub(super) fn stop_all(&mut self, running: Vec<RunningReplica>, trial: &mut Trial) {
        for replica in running.into_iter().rev() {
            let name = replica.process.name().to_owned();
            let service = &replica.service;
            let timeout =
                if self.go_on().is_ok() { service.stop_timeout } else { HURRIED_STOP.min(service.stop_timeout) };
            let ended = replica.process.stop(service.stop_signal, timeout, &mut self.guard);
            if let ProcessEnd::Killed { reason } = ended {
                trial.caveats.push(TrialCaveat::KilledAtStop {
                    replica: name,
                    signal: name_of(service.stop_signal).to_string(),
                    after_ns: timeout.as_nanos() as f64,
                    reason,
                });
            }
        }
    }
}

/// A caveat for each service that somebody else has started.
pub(super) fn elsewhere(services: &[BoundService]) -> Vec<TrialCaveat> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for service in services {
        if let Start::Elsewhere { place, .. } = &service.start {
            places.entry(&service.name).or_default().push(place.to_string());
        }
    }
    let caveat = |(service, places): (&str, _)| TrialCaveat::ServiceElsewhere {
        service: service.to_owned(),
        places,
        is_here: false,
    };
    places.into_iter().map(caveat).collect()
}

/// How a service with `run` is started.
fn of_command(service: &BoundService, command: &[String], ready: &Ready) -> Launch {
    Launch {
        command: resolve_own_name(command),
        cwd: service.cwd.clone(),
        env: Vec::new(),
        account: None,
        ready: ready.clone(),
    }
}

/// The root processes of replicas.
pub(super) fn pids(running: &[RunningReplica]) -> Vec<u32> {
    running.iter().map(|replica| replica.process.pid()).collect()
}

/// Errors when a replica has ended by itself.
pub(super) fn no_death(running: &mut [RunningReplica], when: &'static str) -> Result<(), Error> {
    for replica in running {
        if let Some(how) = replica.process.ended() {
            return Err(died(replica, how, when));
        }
    }
    Ok(())
}

/// The error for a replica that has ended by itself.
pub(super) fn died(replica: &RunningReplica, how: String, when: &'static str) -> Error {
    let last_lines = replica.process.last_lines().last_words();
    Error::Died { service: replica.process.name().to_owned(), how, when, last_lines }
}

/// `narrows` as a service's program means this very binary, wherever it lies.
pub(super) fn resolve_own_name(command: &[String]) -> Vec<String> {
    let mut command = command.to_vec();
    if command.first().is_some_and(|program| program == "narrows")
        && let Ok(own) = std::env::current_exe()
    {
        command[0] = own.to_string_lossy().into_owned();
    }
    command
}
