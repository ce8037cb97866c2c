//! Agents that send the load of a run in place of this process, and what they report turned into what a trial keeps.
//!
//! Without an address of NATS, the run starts a NATS server and local agents, and ends them with it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use narrows_agents::{AgentsEvent, Coordinator, DividedLoad, MergedLoad, Selector, WhenLost};
use narrows_model::caveat::TrialCaveat;
use narrows_model::load::{LoadBatch, LoadPlan};
use narrows_model::run::Trial;
use narrows_model::units;
use narrows_nats::NatsAddress;
use narrows_telemetry::Store;
use rustix::process::Signal;

use crate::Error;
use crate::components::nats;
use crate::components::process::{Process, Spec};
use crate::guard::Guard;
use crate::leftovers::PREFIX;
use crate::ports::Ports;

/// How long a NATS server of the run's own may take to listen.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// News that wait to be told.
const EVENTS_MAX: usize = 1024;
/// Agents that this process starts at most.
const OWN_MAX: usize = 16;

/// Agents to send the load of a run.
#[derive(Debug, Clone)]
pub struct AgentsRequest {
    /// Which.
    pub selector: Selector,
    /// Where they wait for work; `None` if this process is to start them.
    pub nats: Option<NatsAddress>,
    /// Fate of the share of one that is lost.
    pub when_lost: WhenLost,
    /// The command of an agent, for those that this process starts; the options follow it.
    pub agent_command: Vec<String>,
}

/// Agents of a run.
pub(crate) struct Agents {
    coordinator: Coordinator,
    run: String,
    /// Whether the load of a trial that was interrupted may still be under way.
    is_resumed: bool,
    own: Option<OwnAgents>,
}

impl Agents {
    /// Connects to where agents wait, after starting them if that is wanted.
    pub(crate) fn start(
        request: &AgentsRequest,
        run: &str,
        is_resumed: bool,
        mark: &str,
        guard_command: &[String],
        store: &Arc<dyn Store>,
    ) -> Result<Self, Error> {
        let own = match &request.nats {
            Some(_) => None,
            None => Some(OwnAgents::start(request, mark, guard_command, store)?),
        };
        let nats = request.nats.clone().or_else(|| own.as_ref().map(|own| own.nats.clone()));
        let nats = nats.unwrap_or_else(|| NatsAddress::open_to_all("127.0.0.1:4222"));
        let coordinator = Coordinator::connect(&nats, request.selector.clone(), request.when_lost)?;
        Ok(Self { coordinator, run: run.to_owned(), is_resumed, own })
    }

    /// Has agents send a load, and look at services where they run.
    pub(crate) fn run(
        &self,
        load: SentLoad<'_>,
        stop: &AtomicBool,
        out: &SyncSender<LoadBatch>,
        tell: &(dyn Fn(AgentsEvent) + Sync),
    ) -> Result<MergedLoad, Error> {
        let SentLoad { trial, plan, is_elsewhere, peers, settle, store } = load;
        let mut services: Vec<String> = peers.iter().map(|(_, service, _)| service.clone()).collect();
        services.dedup();
        let divided = DividedLoad {
            run: &self.run,
            trial,
            plan,
            resume: self.is_resumed && is_elsewhere,
            services: &services,
            peers: &peers,
            settle,
        };
        Ok(self.coordinator.run(divided, stop, out, tell, &|records| records.keep(&store))?)
    }

    /// Removes what is kept of a trial that is written down.
    pub(crate) fn forget(&self, trial: i64) {
        self.coordinator.forget(&self.run, trial);
    }

    /// Ends what was started for them.
    pub(crate) fn stop(self) {
        if let Some(own) = self.own {
            own.stop();
        }
    }
}

/// Load of a trial for agents.
pub(crate) struct SentLoad<'a> {
    pub(crate) trial: i64,
    pub(crate) plan: &'a LoadPlan,
    /// Whether its targets were started by somebody else.
    pub(crate) is_elsewhere: bool,
    /// Replicas of services that somebody else has started.
    pub(crate) peers: Vec<(SocketAddr, String, u32)>,
    /// How long after it telemetry is awaited.
    pub(crate) settle: Duration,
    /// Where what agents see is kept.
    pub(crate) store: Arc<dyn Store>,
}

/// Sentence about an event, for people.
pub(crate) fn note(event: &AgentsEvent) -> String {
    match event {
        AgentsEvent::Waiting { wanted } => format!("Looking for {wanted}."),
        AgentsEvent::Given { agent, threads: (threads, of), clock } => {
            let offset = units::duration(clock.offset_ns.unsigned_abs() as f64);
            let side = if clock.offset_ns < 0 { "behind" } else { "ahead" };
            let uncertainty = units::duration(clock.uncertainty_ns as f64);
            format!(
                "Agent {agent} sends with {threads} of {of} threads; its clock is {offset} {side} (± {uncertainty})."
            )
        }
        AgentsEvent::Lost { agent, reason } => {
            format!("Agent {agent} {reason}: what it sends from now on does not count.")
        }
        AgentsEvent::Sees { agent, replicas } => {
            let services: BTreeSet<&str> = replicas.iter().map(|replica| replica.service.as_str()).collect();
            format!("Agent {agent} looks at {}.", services.into_iter().collect::<Vec<_>>().join(", "))
        }
        AgentsEvent::Connection { is_there: false } => "NATS cannot be reached; agents go on.".to_owned(),
        AgentsEvent::Connection { is_there: true } => "NATS can be reached again.".to_owned(),
    }
}

/// A channel for events, with its sending end as a function that threads may share.
pub(crate) fn events() -> (impl Fn(AgentsEvent) + Sync, Receiver<AgentsEvent>) {
    let (sender, events) = sync_channel(EVENTS_MAX);
    // News that nobody has read are lost, and the trial has what became of each agent.
    let tell = move |event| _ = sender.try_send(event);
    (tell, events)
}

/// Notes the parts of a load in its trial, in place of those of an earlier one.
pub(crate) fn keep(load: &MergedLoad, trial: &mut Trial) {
    trial.caveats.retain(|caveat| !matches!(caveat, TrialCaveat::SentByAgent { .. }));
    trial.caveats.extend(load.parts.iter().map(|part| TrialCaveat::SentByAgent { part: part.clone() }));
    let dropped = load.dropped.iter();
    let dropped =
        dropped.map(|(agent, records)| TrialCaveat::RecordsDropped { agent: agent.clone(), records: *records });
    trial.caveats.extend(dropped);
}

/// A NATS server and agents, each a process of this one.
struct OwnAgents {
    nats: NatsAddress,
    /// The server last.
    processes: Vec<Process>,
    guard: Guard,
    folder: PathBuf,
}

impl OwnAgents {
    fn start(
        request: &AgentsRequest,
        mark: &str,
        guard_command: &[String],
        store: &Arc<dyn Store>,
    ) -> Result<Self, Error> {
        let count = request.selector.count.unwrap_or(0);
        if !(1..=OWN_MAX).contains(&count) || !request.selector.labels.is_empty() {
            return Err(Error::OwnAgents { most: OWN_MAX });
        }
        let program = nats::PROGRAM.find().map_err(|missing| Error::NoProgram {
            service: "agents".to_owned(),
            program: missing.binary.to_owned(),
            places: missing.places,
            install: nats::PROGRAM.install,
        })?;
        let mut guard = Guard::start(guard_command, mark)?;
        let folder = std::env::temp_dir().join(format!("{PREFIX}{mark}-nats"));
        guard.add_folder(&folder)?;
        std::fs::create_dir_all(&folder).map_err(|source| Error::File {
            what: "create",
            path: folder.clone(),
            source,
        })?;
        let mut ports = Ports::new();
        let port = ports.take()?;
        ports.release_all();
        let server = format!("127.0.0.1:{port}");
        let mut own = Self { nats: NatsAddress::open_to_all(&server), processes: Vec::new(), guard, folder };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut command = vec![program.path.display().to_string()];
        command.extend(words(&["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]));
        command.push(own.folder.display().to_string());
        own.spawn("nats", 0, command, mark, store)?;
        own.await_server(&server)?;
        for number in 0..count {
            let mut command = request.agent_command.clone();
            let name = format!("local-{}", number + 1);
            command.extend(words(&["--nats", &format!("nats://{server}"), "--name", &name, "--threads", "1"]));
            own.spawn("agent", number as u32, command, mark, store)?;
        }
        // Those that were started last are to be ended first.
        own.processes.reverse();
        Ok(own)
    }

    fn spawn(
        &mut self,
        service: &str,
        replica: u32,
        command: Vec<String>,
        mark: &str,
        store: &Arc<dyn Store>,
    ) -> Result<(), Error> {
        let spec = Spec {
            service: service.to_owned(),
            replica,
            command,
            cwd: self.folder.clone(),
            env: Vec::new(),
            account: None,
            wanted_line: None,
        };
        self.processes.push(Process::start(&spec, None, mark, store, &mut self.guard)?);
        Ok(())
    }

    fn await_server(&mut self, server: &str) -> Result<(), Error> {
        let until = Instant::now() + SERVER_TIMEOUT;
        while std::net::TcpStream::connect(server).is_err() {
            let ended = self.processes.iter_mut().find_map(Process::ended);
            if let Some(how) = ended.or_else(|| (Instant::now() > until).then(|| "does not listen".to_owned())) {
                let said = self
                    .processes
                    .first()
                    .map(|process| process.last_lines().last_words().join("\n"))
                    .unwrap_or_default();
                return Err(Error::OwnNats { how, said });
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn stop(mut self) {
        for process in self.processes.drain(..) {
            process.stop(Signal::TERM, STOP_TIMEOUT, &mut self.guard);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
        self.guard.done();
    }
}
