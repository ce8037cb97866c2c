//! One trial: start the services, wait until they answer, put them under load, stop them.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use narrows_load::{Clock, LoadOutcome};
use narrows_model::load::{LoadBatch, LoadPlan};
use narrows_model::run::{ServiceInstance, Trial, Window};
use narrows_telemetry::Store;
use narrows_telemetry::otlp::Weights;
use narrows_telemetry::run_file::Recorder;
use narrows_telemetry::sampler::Sampler;

use crate::Error;
use crate::cgroup::{Cgroup, Limits};
use crate::components::process::{Ended, Process, Spec};
use crate::components::ready;
use crate::environment::cores;
use crate::experiment::{Bindings, BoundService, BoundTrial, Experiment, Ready, Variant};
use crate::guard::{Guard, kill_marked};
use crate::ports::Ports;
use crate::progress::{Event, Progress};
use crate::setup::{Setups, Surroundings};

const BATCHES_IN_FLIGHT: usize = 64;
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
const HURRIED_STOP: Duration = Duration::from_secs(2);
/// How long services are asked to collect spans before they send them.
const SPAN_BATCH_DELAY: Duration = Duration::from_millis(500);
const SPAN_GRACE: Duration = Duration::from_millis(500);

/// What every trial of a run shares.
pub(crate) struct Bench<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) run_id: &'a str,
    pub(crate) seed: u64,
    pub(crate) time_scale: f64,
    pub(crate) otlp_endpoint: String,
    pub(crate) recorder: Recorder,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) weights: Weights,
    pub(crate) sampler: &'a Sampler,
    pub(crate) guard: Guard,
    pub(crate) ports: Ports,
    pub(crate) setups: Setups,
    pub(crate) stop: &'a AtomicBool,
}

/// A running replica and how to end it.
struct Running {
    process: Process,
    service: BoundService,
}

impl Bench<'_> {
    /// Makes one trial; what is learnt about it (validity, caveats) is written into `trial`.
    /// Whatever happens, nothing of the trial is left running.
    pub(crate) fn trial(
        &mut self,
        variant: &Variant,
        trial: &mut Trial,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let folder = self.scratch_folder(trial.id)?;
        let mut running = Vec::new();
        let result = self.start_and_load(variant, trial, &folder, &mut running, progress);
        progress.tell(&Event::Stopping);
        self.await_last_spans();
        self.sampler.unwatch_all();
        self.stop_all(running, trial);
        kill_marked(self.run_id);
        self.ports.release_all();
        let _ = std::fs::remove_dir_all(&folder);
        result
    }

    fn scratch_folder(&mut self, trial: i64) -> Result<PathBuf, Error> {
        let path = std::env::temp_dir().join(format!("narrows-{}-{trial}", self.run_id));
        self.guard.add_folder(&path)?;
        std::fs::create_dir_all(&path).map_err(|source| Error::File { what: "create", path: path.clone(), source })?;
        Ok(path)
    }

    fn start_and_load(
        &mut self,
        variant: &Variant,
        trial: &mut Trial,
        folder: &std::path::Path,
        running: &mut Vec<Running>,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let BoundTrial { services, mut load } = self.bind(variant, folder)?;
        for service in services {
            running.push(self.start(service, trial, progress)?);
            if let Some(replica) = running.last_mut() {
                self.await_ready(replica)?;
            }
        }
        self.watch(running)?;
        load.targets = self.targets(&load, running)?;
        self.load(&load, trial, running, progress)
    }

    fn bind(&mut self, variant: &Variant, folder: &std::path::Path) -> Result<BoundTrial, Error> {
        let mut ports = Vec::new();
        for (service, replica, fixed) in self.experiment.replicas(variant).map_err(Error::Experiment)? {
            let port = match fixed {
                Some(port) => port,
                None => self.ports.take()?,
            };
            ports.push((service, replica, port));
        }
        let bindings = Bindings {
            ports,
            otlp_endpoint: self.otlp_endpoint.clone(),
            trial_dir: folder.to_owned(),
            seed: self.seed,
            time_scale: self.time_scale,
        };
        self.experiment.bind(variant, &bindings).map_err(Error::Experiment)
    }

    fn start(
        &mut self,
        service: BoundService,
        trial: &mut Trial,
        progress: &mut dyn Progress,
    ) -> Result<Running, Error> {
        let env = self.environment(&service);
        let mut around =
            Surroundings { run_id: self.run_id, store: &self.store, guard: &mut self.guard, stop: self.stop, progress };
        self.setups.ensure(&service, &env, &mut around)?;
        progress.tell(&Event::Starting { service: &service.name, replica: service.replica });
        let (cgroup, limits) = self.cap(&service, trial, progress);
        let spec = Spec {
            service: service.name.clone(),
            replica: service.replica,
            command: resolve_own_name(&service.command),
            cwd: service.cwd.clone(),
            env,
            wanted_line: match &service.ready {
                Ready::Log { text } => Some(text.clone()),
                _ => None,
            },
        };
        let process = Process::start(&spec, cgroup, self.run_id, &self.store, &mut self.guard)?;
        let instance = ServiceInstance {
            service: service.name.clone(),
            replica: service.replica,
            pid: process.pid(),
            port: service.port,
            command: spec.command,
            cpu_limit_cores: limits.cpus,
            memory_limit_bytes: limits.memory_bytes,
        };
        self.recorder.put_service(trial.id, &instance)?;
        Ok(Running { process, service })
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
        let name = format!("narrows-{}-{}-{}", self.run_id, service.name, service.replica);
        let guard = &mut self.guard;
        match Cgroup::create(&name, limits, |path| drop(guard.add_cgroup(path))) {
            Ok(cgroup) => (Some(cgroup), limits),
            Err(reason) => {
                let caveat = format!("{} runs without its CPU and memory caps: {reason}", service.name);
                if !trial.caveats.contains(&caveat) {
                    progress.tell(&Event::Caveat(&caveat));
                    trial.caveats.push(caveat);
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
            ("OTEL_EXPORTER_OTLP_ENDPOINT", self.otlp_endpoint.clone()),
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

    fn await_ready(&self, replica: &mut Running) -> Result<(), Error> {
        let service = &replica.service;
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        ready::wait(&mut replica.process, &service.ready, service.port, service.ready_timeout, &is_stopped)
    }

    fn watch(&self, running: &[Running]) -> Result<(), Error> {
        for replica in running {
            self.sampler.watch(&replica.service.name, replica.service.replica, replica.process.pid())?;
        }
        Ok(())
    }

    /// The addresses of the target's replicas, or of the URL.
    fn targets(&self, load: &LoadPlan, running: &[Running]) -> Result<Vec<SocketAddr>, Error> {
        if !load.targets.is_empty() {
            return Ok(load.targets.clone());
        }
        let target = &self.experiment.load.target;
        let of_service: Vec<SocketAddr> = running
            .iter()
            .filter(|replica| replica.service.name == *target)
            .map(|replica| SocketAddr::from((Ipv4Addr::LOCALHOST, replica.service.port)))
            .collect();
        if !of_service.is_empty() {
            return Ok(of_service);
        }
        resolve_url(target).map_err(|reason| Error::Target { target: target.clone(), reason })
    }

    fn load(
        &mut self,
        plan: &LoadPlan,
        trial: &mut Trial,
        running: &mut [Running],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let mut plan = plan.clone();
        plan.threads = plan.threads.clamp(1, cores() as usize);
        self.weights.set(plan.tracing);
        let windows = narrows_load::planned_windows(&plan);
        let duration = windows.iter().map(|window| window.end).max().filter(|end| *end < Duration::MAX);
        progress.tell(&Event::LoadStarted { duration });
        let end_load = AtomicBool::new(false);
        let (sender, batches) = sync_channel(BATCHES_IN_FLIGHT);
        let (outcome, death) = std::thread::scope(|scope| {
            let (plan, end_load) = (&plan, &end_load);
            let load = scope.spawn(move || narrows_load::run(plan, Clock::new(), end_load, &sender));
            let death = self.follow(&batches, duration, trial.id, running, end_load, progress);
            (load.join(), death)
        });
        let outcome = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        self.recorder.put_windows(trial.id, &placed(&windows, &outcome))?;
        trial.validity = outcome.validity;
        match death? {
            Some(death) => Err(death),
            None if self.stop.load(Ordering::Relaxed) => Err(Error::Interrupted),
            None => Ok(()),
        }
    }

    /// Writes down the load as it happens until it is over. Ends it early when a service dies or a signal came;
    /// returns the death.
    fn follow(
        &self,
        batches: &Receiver<LoadBatch>,
        duration: Option<Duration>,
        trial: i64,
        running: &mut [Running],
        end_load: &AtomicBool,
        progress: &mut dyn Progress,
    ) -> Result<Option<Error>, Error> {
        let mut death = None;
        let mut first_ns = None;
        loop {
            match batches.recv_timeout(WATCH_INTERVAL) {
                Ok(batch) => {
                    if let Some(last) = batch.seconds.last() {
                        let first = *first_ns.get_or_insert(last.start_ns);
                        let elapsed = Duration::from_nanos((last.start_ns - first).max(0) as u64 + 1_000_000_000);
                        progress.tell(&Event::Second { elapsed, duration, rows: &batch.seconds });
                    }
                    if let Err(error) = self.recorder.put_load(trial, batch) {
                        end_load.store(true, Ordering::Relaxed);
                        batches.iter().for_each(drop);
                        return Err(error.into());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(death),
            }
            if death.is_none() {
                death = first_death(running);
            }
            if death.is_some() || self.stop.load(Ordering::Relaxed) {
                end_load.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Gives services the time to send what they batch: many end without flushing when asked to end.
    fn await_last_spans(&self) {
        let end = Instant::now() + SPAN_BATCH_DELAY + SPAN_GRACE;
        while Instant::now() < end && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(WATCH_INTERVAL);
        }
    }

    /// Stops the replicas, last started first, so that callers end before those they call.
    fn stop_all(&mut self, running: Vec<Running>, trial: &mut Trial) {
        for replica in running.into_iter().rev() {
            let name = replica.process.name().to_owned();
            let hurry = self.stop.load(Ordering::Relaxed);
            let patience =
                if hurry { HURRIED_STOP.min(replica.service.stop_timeout) } else { replica.service.stop_timeout };
            let ended = replica.process.stop(replica.service.stop_signal, patience, &mut self.guard);
            if ended == Ended::Killed && !hurry {
                trial
                    .caveats
                    .push(format!("{name} did not end when asked and was killed; its last spans may be missing"));
            }
        }
    }
}

fn first_death(running: &mut [Running]) -> Option<Error> {
    running.iter_mut().find_map(|replica| {
        let how = replica.process.ended()?;
        Some(Error::Died {
            service: replica.process.name().to_owned(),
            how,
            last_lines: replica.process.last_lines().get(),
        })
    })
}

/// The planned windows on the wall clock, cut where the load ended early.
fn placed(planned: &[narrows_load::PlannedWindow], outcome: &LoadOutcome) -> Vec<Window> {
    let at = |offset: Duration| outcome.started_ns.saturating_add(i64::try_from(offset.as_nanos()).unwrap_or(i64::MAX));
    planned
        .iter()
        .zip(0..)
        .filter(|(window, _)| at(window.start) < outcome.ended_ns)
        .map(|(window, index)| Window {
            index,
            kind: window.kind,
            label: window.label.clone(),
            start_ns: at(window.start),
            end_ns: at(window.end).min(outcome.ended_ns),
            vus: window.vus,
        })
        .collect()
}

/// `narrows` as a service's program means this very binary, wherever it lies.
fn resolve_own_name(command: &[String]) -> Vec<String> {
    let mut command = command.to_vec();
    if command.first().is_some_and(|program| program == "narrows")
        && let Ok(own) = std::env::current_exe()
    {
        command[0] = own.to_string_lossy().into_owned();
    }
    command
}

fn resolve_url(url: &str) -> Result<Vec<SocketAddr>, String> {
    let authority = url.strip_prefix("http://").ok_or("expected a service or `http://host:port`")?;
    let authority = authority.split('/').next().unwrap_or_default();
    let with_port = if authority.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok()) {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    let addresses: Vec<SocketAddr> = with_port.to_socket_addrs().map_err(|error| error.to_string())?.take(1).collect();
    if addresses.is_empty() { Err("the name has no address".into()) } else { Ok(addresses) }
}
