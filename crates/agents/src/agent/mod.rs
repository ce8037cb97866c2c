//! An agent: waits for work, sends parts of loads, and looks at services on its machine.
//!
//! One thread responds to commands and shows that the agent is alive. Each part has its own threads (`work.rs`), and so does
//! sampling (`eyes.rs`).

mod eyes;
mod work;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::Message;
use bytes::Bytes;
use futures_util::StreamExt as _;
use narrows_load::Clock;
use narrows_model::load::LoadPlan;
use narrows_nats::NatsAddress;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::framing::Assembler;
use crate::link::{Link, json};
use crate::messages::{
    Alive, Assignment, Introduction, Pong, Response, Stop, Watch, WatchedReplica, WorkUnderWay, version,
};
use crate::selector::{LABELS_MAX, WORD_BYTES_MAX, is_name, label};
use crate::subjects;
use eyes::Eyes;
use work::{Work, WorkEnd};

pub use eyes::EyesOptions;

/// How often it looks at its parts, and whether it is to end.
const TICK: Duration = Duration::from_millis(100);
/// How often it shows that it is alive while it sends.
const ALIVE_EVERY: Duration = Duration::from_millis(500);
/// The most parts that it sends at the same time.
const PARTS_MAX: usize = 16;
/// How long it looks at services without a sign of life from the coordinator.
const ALONE_MAX: Duration = Duration::from_secs(60);
/// How long parts may take to end after they were told to.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// How an agent works.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// Servers on which it waits for work.
    pub nats: NatsAddress,
    /// Its name, unlike that of any other agent; `None` for the machine's and the process's.
    pub name: Option<String>,
    /// Labels by which it can be chosen, each `KEY=VALUE`.
    pub labels: Vec<String>,
    /// Load threads that it may use; `None` for as many as the machine has cores.
    pub threads: Option<usize>,
    /// Services that it looks at on its machine.
    pub eyes: EyesOptions,
}

/// News of an agent, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// It waits for work.
    Ready {
        /// Its name.
        name: String,
        /// The servers.
        server: String,
    },
    /// It begins a part.
    Working {
        /// The run.
        run: String,
        /// The load threads that it runs, and how many there are in all.
        threads: (usize, usize),
    },
    /// A part has ended.
    Ended {
        /// The run.
        run: String,
        /// Why before its time or without all reports, if it did.
        trouble: Option<String>,
    },
}

/// Waits for work and does it until `stop` is set; then parts under way are stopped, and their reports sent.
///
/// # Errors
/// When an option makes no sense, and when the servers cannot be reached at the beginning. Later losses of the connection are
/// waited for.
pub fn serve(options: &AgentOptions, stop: &AtomicBool, tell: &mut dyn FnMut(AgentEvent)) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| Error::System { action: "start the agent's runtime", source })?;
    runtime.block_on(async { Agent::start(options).await?.serve(stop, tell).await })
}

/// Plan that comes in pieces, for a trial.
struct Incoming {
    run: String,
    trial: i64,
    assembler: Assembler,
    plan: Option<LoadPlan>,
}

/// See the module.
struct Agent {
    link: Link,
    name: String,
    labels: BTreeMap<String, String>,
    cores: usize,
    clock: Clock,
    incoming: Option<Incoming>,
    works: Vec<Work>,
    eyes: Eyes,
    /// When the coordinator was last heard of.
    heard: Instant,
}

impl Agent {
    async fn start(options: &AgentOptions) -> Result<Self, Error> {
        let name = options.name.clone().unwrap_or_else(default_name);
        if !is_name(&name) {
            let shown: String = name.chars().take(WORD_BYTES_MAX).collect();
            let problem = format!("`{shown}` cannot name an agent, expected 1 to {WORD_BYTES_MAX} of A-Z a-z 0-9 - _");
            return Err(Error::Words(problem));
        }
        if options.labels.len() > LABELS_MAX {
            return Err(Error::Words(format!("{} labels, expected {LABELS_MAX} at most", options.labels.len())));
        }
        let labels: Result<BTreeMap<_, _>, _> = options.labels.iter().map(|text| label(text)).collect();
        let link = Link::open(&options.nats, &name).await?;
        // Two agents with one name would both follow each command.
        if link.ask::<Pong>(&name, "ping", Bytes::new()).await.is_ok() {
            return Err(Error::SameName { agent: name });
        }
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            link,
            name,
            labels: labels.map_err(Error::Words)?,
            cores: options.threads.unwrap_or(available).max(1),
            clock: Clock::new(),
            incoming: None,
            works: Vec::new(),
            eyes: Eyes::open(options.eyes.clone())?,
            heard: Instant::now(),
        })
    }

    async fn serve(mut self, stop: &AtomicBool, tell: &mut dyn FnMut(AgentEvent)) -> Result<(), Error> {
        let listen = |subject: String| {
            let link = self.link.clone();
            async move { link.client.subscribe(subject).await.map_err(link.failed("listen for work")) }
        };
        let mut hello = listen(subjects::HELLO.to_owned()).await?;
        let mut commands = listen(subjects::command(&self.name, "*")).await?;
        let mut coordinators = listen(subjects::coordinator("*")).await?;
        self.link.client.flush().await.map_err(self.link.failed("listen for work"))?;
        tell(AgentEvent::Ready { name: self.name.clone(), server: self.link.server().to_owned() });
        let mut tick = tokio::time::interval(TICK);
        let mut alive = tokio::time::interval(ALIVE_EVERY);
        while !stop.load(Ordering::Relaxed) {
            tokio::select! {
                Some(message) = hello.next() => self.introduce(message).await,
                Some(message) = commands.next() => self.obey(message, tell).await,
                Some(message) = coordinators.next() => self.hear(&message),
                _ = tick.tick() => self.look_at_works(tell),
                _ = alive.tick() => self.show_life().await,
            }
        }
        self.end(tell).await;
        Ok(())
    }

    /// Stops what is under way and waits for its last reports.
    async fn end(&mut self, tell: &mut dyn FnMut(AgentEvent)) {
        let until = Instant::now() + END_TIMEOUT;
        while !self.works.is_empty() && Instant::now() < until {
            self.works.iter().for_each(|work| work.leave("was asked to end"));
            tokio::time::sleep(TICK).await;
            self.look_at_works(tell);
        }
        self.eyes.give_up();
        self.works.iter().for_each(Work::abandon);
        self.link.flush().await;
    }

    async fn introduce(&mut self, message: Message) {
        if self.works.is_empty() && self.eyes.looks_at().is_none() {
            // The wall clock may have been set since: samples have its time, and load must have the same.
            self.clock = Clock::new();
        }
        let introduction = Introduction {
            name: self.name.clone(),
            version: version(),
            labels: self.labels.clone(),
            cores: self.cores,
            work: self.works.first().map(|work| WorkUnderWay { run: work.run.clone(), trial: work.trial }),
            watches: self.eyes.services(),
            receives: self.eyes.receives(),
        };
        self.respond(&message, json(&introduction)).await;
    }

    async fn respond(&self, message: &Message, payload: Bytes) {
        if let Some(reply) = &message.reply {
            let _ = self.link.client.publish(reply.clone(), payload).await;
        }
    }

    async fn obey(&mut self, message: Message, tell: &mut dyn FnMut(AgentEvent)) {
        let received_ns = self.clock.now_ns();
        let command = message.subject.rsplit('.').next().unwrap_or_default();
        let payload = match command {
            "ping" => said(Ok(Pong { received_ns, responded_ns: self.clock.now_ns() })),
            "plan" => said(self.take_plan(&message.payload)),
            "work" => said(read(&message.payload).and_then(|assignment| self.begin(assignment, tell))),
            "watch" => said(read(&message.payload).and_then(|watch| self.look(watch))),
            "stop" => said(read(&message.payload).map(|stop: Stop| self.stop(&stop))),
            other => said::<()>(Err(format!("knows no command `{other}`"))),
        };
        self.respond(&message, payload).await;
    }

    /// Takes a piece of a plan. The name of its trial comes before it, on a line.
    fn take_plan(&mut self, payload: &[u8]) -> Response<()> {
        let line = payload.iter().position(|byte| *byte == b'\n').ok_or("a piece of a plan without its trial")?;
        let (run, trial): (String, i64) = read(&payload[..line])?;
        self.heard = Instant::now();
        let is_same = |incoming: &Incoming| incoming.run == run && incoming.trial == trial;
        if !self.incoming.as_ref().is_some_and(is_same) {
            self.incoming = Some(Incoming { run, trial, assembler: Assembler::default(), plan: None });
        }
        let Some(incoming) = &mut self.incoming else { return Ok(()) };
        if let Some(plan) = incoming.assembler.take(&payload[line + 1..])? {
            incoming.plan = Some(plan);
        }
        Ok(())
    }

    fn begin(&mut self, assignment: Assignment, tell: &mut dyn FnMut(AgentEvent)) -> Response<()> {
        let other = self.works.iter().find(|work| work.run != assignment.run || work.trial != assignment.trial);
        if let Some(other) = other {
            return Err(format!("works for run {} already", other.run));
        }
        if self.works.len() >= PARTS_MAX {
            return Err(format!("sends {PARTS_MAX} parts already"));
        }
        let is_of = |incoming: &&Incoming| incoming.run == assignment.run && incoming.trial == assignment.trial;
        let plan = self.incoming.as_ref().filter(is_of).and_then(|incoming| incoming.plan.clone());
        let plan = plan.ok_or("has no plan of this trial")?;
        let threads = (assignment.part.threads, assignment.part.of);
        let run = assignment.run.clone();
        self.heard = Instant::now();
        self.works.push(Work::begin(plan, assignment, self.clock, self.link.clone())?);
        tell(AgentEvent::Working { run, threads });
        Ok(())
    }

    fn look(&mut self, watch: Watch) -> Response<Vec<WatchedReplica>> {
        self.heard = Instant::now();
        self.eyes.begin(watch, &self.name, &self.link)
    }

    fn stop(&mut self, stop: &Stop) {
        if stop.number.is_none() {
            self.eyes.end(&stop.run, stop.trial);
        }
        let meant = self.works.iter().filter(|work| work.run == stop.run && work.trial == stop.trial);
        let meant = meant.filter(|work| stop.number.is_none_or(|number| number == work.number));
        meant.for_each(|work| work.stop("the coordinator ended it"));
    }

    fn hear(&mut self, message: &Message) {
        let run = message.subject.rsplit('.').next().unwrap_or_default();
        let is_eyes = self.eyes.looks_at().is_some_and(|(looked_at, _)| looked_at == run);
        if is_eyes || self.works.first().is_some_and(|work| work.run == run) {
            self.heard = Instant::now();
        }
    }

    fn look_at_works(&mut self, tell: &mut dyn FnMut(AgentEvent)) {
        let alone = self.heard.elapsed();
        for work in self.works.iter().filter(|work| alone > work.alone) {
            work.leave(&format!("heard nothing from the coordinator for {} s", work.alone.as_secs()));
            work.give_up_reports_within(END_TIMEOUT);
        }
        if alone > ALONE_MAX {
            self.eyes.give_up();
        }
        let (ended, under_way) = self.works.drain(..).partition(Work::has_ended);
        self.works = under_way;
        for WorkEnd { run, trouble } in ended.into_iter().map(Work::end) {
            tell(AgentEvent::Ended { run, trouble });
        }
        if self.works.is_empty() {
            // Plans hold what requests hold: not for longer than they are needed.
            let is_whole = |incoming: &Incoming| incoming.plan.is_some();
            let has_worked = self.incoming.as_ref().is_some_and(is_whole) && alone > END_TIMEOUT;
            self.incoming = self.incoming.take().filter(|_| !has_worked);
        }
    }

    async fn show_life(&self) {
        let own = self.works.first().map(|work| (work.run.as_str(), work.trial));
        if let Some((run, trial)) = own.or(self.eyes.looks_at()) {
            self.link.say(subjects::alive(run, trial), &Alive { agent: self.name.clone() }).await;
        }
    }
}

/// The machine's name and the process's number, which no other agent has.
fn default_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    format!("{}-{}", &host[..host.len().min(WORD_BYTES_MAX - 12)], std::process::id())
}

fn said<T: Serialize>(response: Response<T>) -> Bytes {
    json(&response)
}

fn read<T: DeserializeOwned>(payload: &[u8]) -> Response<T> {
    serde_json::from_slice(payload).map_err(|error| format!("cannot read the command: {error}"))
}
