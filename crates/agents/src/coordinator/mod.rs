//! The coordinator: finds agents, divides a load over them, follows it to its end.
//!
//! It decides alone which agent sends what and when one is lost, and writes each decision into the stream of the trial before
//! anybody acts on it. So one that begins anew ([`Coordinator::run`] with `resume`) reads what the former one did, and goes
//! on.

mod choice;
mod silence;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use async_nats::Subscriber;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::future::{join_all, try_join_all};
use narrows_load::{Clock, LoadPart, can_be_taken_over, second_after, second_at, threads};
use narrows_model::load::{ClockOffset, LoadBatch, LoadPlan};
use narrows_nats::NatsAddress;
use narrows_telemetry::Records;
use tokio::runtime::{Builder, Runtime};

use crate::Error;
use crate::framing::{self, Assembler, COMPRESSED_BYTES_MAX};
use crate::link::{Link, json};
use crate::messages::{Alive, Assignment, Begun, Given, Lost, Report, Sees, Stop, Watch, WatchedReplica};
use crate::parts::{Parts, check_rows, divide};
use crate::selector::Selector;
use crate::subjects;
use choice::{Chosen, Found};
use silence::Silence;

pub use crate::parts::MergedLoad;

/// Time between the last word to the agents and the load's first instant.
const LEAD: Duration = Duration::from_secs(1);
/// Further time for each agent that sends, and for each that is to look at services.
const SENDER_LEAD: Duration = Duration::from_millis(20);
const EYE_LEAD: Duration = Duration::from_millis(200);
/// The least that must be left of it when all have agreed.
const LEAD_LEFT: Duration = Duration::from_millis(100);
/// How often the stream is read when nothing new was in it.
const POLL: Duration = Duration::from_millis(50);
/// How often the coordinator shows that it is alive.
const ALIVE_EVERY: Duration = Duration::from_millis(500);
/// How long an agent goes on without a coordinator.
const ALONE: Duration = Duration::from_secs(60);
/// A part that is taken over begins at least so long after its loss was noticed.
const TAKE_OVER_AFTER: Duration = Duration::from_secs(1);
/// How long agents may take to end their parts once they were told to, beside the drain of the load.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// The most senders of reports that are listened to.
const SENDERS_MAX: usize = 4096;

/// Fate of the share of an agent that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenLost {
    /// It stays away, and the load goes on without it.
    #[default]
    GoOn,
    /// Another agent takes it over, where nothing of it could be sent twice.
    TakeOver,
}

/// News of a divided load, for people.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentsEvent {
    /// Agents are being waited for.
    Waiting {
        /// Which, in words.
        wanted: String,
    },
    /// A part belongs to an agent.
    Given {
        /// The agent.
        agent: String,
        /// Its load threads, and those of the whole load.
        threads: (usize, usize),
        /// Its clock against this one.
        clock: ClockOffset,
    },
    /// An agent is lost.
    Lost {
        /// The agent.
        agent: String,
        /// Reason, as a clause.
        reason: String,
    },
    /// An agent looks at services on its machine.
    Sees {
        /// The agent.
        agent: String,
        /// The replicas.
        replicas: Vec<WatchedReplica>,
    },
    /// The servers cannot be reached, or can be again.
    Connection {
        /// Whether they can.
        is_there: bool,
    },
}

/// Load of a trial, for agents to send.
#[derive(Debug, Clone, Copy)]
pub struct DividedLoad<'a> {
    /// The run.
    pub run: &'a str,
    /// The trial.
    pub trial: i64,
    /// The plan. Its number of threads means nothing: each agent uses as many as it has been given.
    pub plan: &'a LoadPlan,
    /// Whether a former coordinator's load of this trial goes on, if there is one, instead of being ended.
    pub resume: bool,
    /// Services that run elsewhere, which agents on their machines may look at.
    pub services: &'a [String],
    /// Addresses of their replicas.
    pub peers: &'a [(SocketAddr, String, u32)],
    /// How long after the load telemetry is awaited that agents receive.
    pub settle: Duration,
}

/// See the module.
#[derive(Debug)]
pub struct Coordinator {
    runtime: Runtime,
    link: Link,
    selector: Selector,
    when_lost: WhenLost,
}

impl Coordinator {
    /// Connects. Agents are looked for when a load begins.
    ///
    /// # Errors
    /// When no server lets it in.
    pub fn connect(nats: &NatsAddress, selector: Selector, when_lost: WhenLost) -> Result<Self, Error> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("agents").enable_all().build();
        let runtime = runtime.map_err(|source| Error::System { action: "start the coordinator's runtime", source })?;
        let link = runtime.block_on(Link::open(nats, "narrows-coordinator"))?;
        Ok(Self { runtime, link, selector, when_lost })
    }

    /// Has agents send a load, and blocks until it has ended. Seconds go to `out` as from [`narrows_load::run`]; `stop` ends it
    /// early. The reports of the trial are kept until [`Coordinator::forget`].
    ///
    /// # Errors
    /// When too few agents are there, one refuses its part or cannot send it, or all are lost. No agent goes on then.
    pub fn run(
        &self,
        load: DividedLoad<'_>,
        stop: &AtomicBool,
        out: &SyncSender<LoadBatch>,
        tell: &(dyn Fn(AgentsEvent) + Sync),
        see: &(dyn Fn(Records) + Sync),
    ) -> Result<MergedLoad, Error> {
        let conductor = Conductor {
            link: &self.link,
            selector: &self.selector,
            when_lost: self.when_lost,
            load,
            clock: Clock::new(),
            parts: Parts::of(load.plan),
            next: 1,
            shown: None,
            assemblers: HashMap::new(),
            stop,
            out,
            tell,
            see,
        };
        self.runtime.block_on(conductor.conduct())
    }

    /// Removes the reports of a trial, which are of no use once it is written down.
    pub fn forget(&self, run: &str, trial: i64) {
        self.runtime.block_on(self.link.remove_stream(run, trial));
    }
}

/// A load under way.
struct Conductor<'a> {
    link: &'a Link,
    selector: &'a Selector,
    when_lost: WhenLost,
    load: DividedLoad<'a>,
    clock: Clock,
    parts: Parts,
    /// Number of the next message of the stream.
    next: u64,
    /// When it last showed that it is alive.
    shown: Option<Instant>,
    /// Pieces of each sender.
    assemblers: HashMap<String, Assembler>,
    stop: &'a AtomicBool,
    out: &'a SyncSender<LoadBatch>,
    tell: &'a (dyn Fn(AgentsEvent) + Sync),
    /// Keeps what agents see.
    see: &'a (dyn Fn(Records) + Sync),
}

impl Conductor<'_> {
    async fn conduct(mut self) -> Result<MergedLoad, Error> {
        let (run, trial) = (self.load.run, self.load.trial);
        let has_former = self.link.has_stream(run, trial).await?;
        let is_begun = has_former && self.load.resume && self.resume().await?;
        let ended = match is_begun {
            true => self.follow().await,
            false => {
                if has_former {
                    self.start_anew().await?;
                }
                match self.begin().await {
                    Ok(()) => self.follow().await,
                    Err(error) => Err(error),
                }
            }
        };
        if let Err(error) = ended {
            self.end_all().await;
            self.link.remove_stream(run, trial).await;
            return Err(error);
        }
        let plan = self.load.plan;
        Ok(self.parts.conclude(|number| second_at(plan, number)))
    }

    /// Reads what a former coordinator and its agents have reported; false if its load never began.
    async fn resume(&mut self) -> Result<bool, Error> {
        while self.read_next().await? {}
        self.hand_over();
        // The former coordinator has seen to these.
        self.parts.take_left();
        Ok(self.parts.begun().is_some() && self.parts.len() > 0)
    }

    /// Ends what a former coordinator began.
    async fn start_anew(&mut self) -> Result<(), Error> {
        while self.read_next().await? {}
        self.end_all().await;
        self.link.remove_stream(self.load.run, self.load.trial).await;
        self.parts = Parts::of(self.load.plan);
        self.next = 1;
        self.assemblers.clear();
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), Error> {
        let Self { link, load, tell, .. } = *self;
        let packed =
            framing::pieces(load.plan).map_err(|bytes| Error::PlanSize { bytes, most: COMPRESSED_BYTES_MAX })?;
        tell(AgentsEvent::Waiting { wanted: self.selector.to_string() });
        let Found { senders, eyes } = choice::choose(link, self.selector, &load, self.stop).await?;
        let agents = choice::measure_clocks(link, &self.clock, senders).await?;
        let eyes = choice::measure_clocks(link, &self.clock, eyes).await?;
        let allowed: Vec<usize> = agents.iter().map(|agent| agent.cores).collect();
        let total = threads(load.plan, allowed.iter().sum());
        check_rows(load.plan, agents.len().min(total))?;
        try_join_all(agents.iter().map(|agent| deliver(link, load, &agent.name, &packed))).await?;
        link.make_stream(load.run, load.trial).await?;
        let now_ns = self.clock.now_ns();
        let lead = LEAD + SENDER_LEAD * agents.len() as u32 + EYE_LEAD * eyes.len() as u32;
        let start_ns = now_ns + lead.as_nanos() as i64;
        self.decide(Report::Begun(Begun { load: now_ns, start_ns, threads: total })).await?;
        for eye in eyes {
            self.open_eye(eye, now_ns).await?;
        }
        for (agent, range) in agents.into_iter().zip(divide(&allowed, total)) {
            if range.is_empty() {
                continue;
            }
            let part = LoadPart {
                first: range.start,
                threads: range.len(),
                of: total,
                start_ns: start_ns.saturating_add(agent.clock.offset_ns),
                from_second: 0,
            };
            self.give(agent, part).await?;
        }
        try_join_all(self.parts.running().map(|(number, given)| assign(link, load, now_ns, number, given))).await?;
        if start_ns - self.clock.now_ns() < LEAD_LEFT.as_nanos() as i64 {
            let agent = self.parts.running().map(|(_, given)| given.agent.clone()).collect::<Vec<_>>().join(", ");
            return Err(Error::Silent { agent, action: "begin", waited: lead - LEAD_LEFT });
        }
        Ok(())
    }

    /// Has an agent look at services on its machine.
    async fn open_eye(&mut self, eye: Chosen, id: i64) -> Result<(), Error> {
        let Chosen { name: agent, clock, receives, .. } = eye;
        self.decide(Report::Sees(Sees { agent: agent.clone(), clock, receives })).await?;
        let DividedLoad { run, trial, plan, peers, .. } = self.load;
        let watch = Watch { run: run.to_owned(), trial, load: id, tracing: plan.tracing, peers: peers.to_owned() };
        let replicas = self.link.ask(&agent, "watch", json(&watch)).await?;
        (self.tell)(AgentsEvent::Sees { agent, replicas });
        Ok(())
    }

    /// Ends what agents see, once what they receive has come, and waits for the last of it from those that are alive.
    async fn close_eyes(&mut self, silence: &mut Silence, alive: &mut Subscriber) -> Result<(), Error> {
        if self.parts.receive() && !self.stop.load(Ordering::Relaxed) {
            self.follow_until(Instant::now() + self.load.settle, silence, alive, |_| false).await?;
        }
        let stop = Stop { run: self.load.run.to_owned(), trial: self.load.trial, number: None };
        for agent in self.parts.eyes() {
            let _ = self.link.client.publish(subjects::command(agent, "stop"), json(&stop)).await;
        }
        self.follow_until(Instant::now() + END_TIMEOUT, silence, alive, |parts| parts.eyes().next().is_none()).await
    }

    /// Writes down that a part belongs to an agent.
    async fn give(&mut self, agent: Chosen, part: LoadPart) -> Result<(), Error> {
        let Chosen { name, labels, cores, clock, .. } = agent;
        (self.tell)(AgentsEvent::Given { agent: name.clone(), threads: (part.threads, part.of), clock });
        self.decide(Report::Given(Given { agent: name, labels, cores, part, clock })).await
    }

    /// Adds a decision to the stream, and reads up to it.
    async fn decide(&mut self, decision: Report) -> Result<(), Error> {
        let server = self.link.server().to_owned();
        let failed = |reason: String| Error::Server { server: server.clone(), action: "write a decision down", reason };
        let subject = subjects::reports(self.load.run, self.load.trial, subjects::COORDINATOR);
        let id = format!("decision-{}-{}", self.next, self.clock.now_ns());
        let since = Instant::now();
        let is_over = || since.elapsed() > ALONE || self.stop.load(Ordering::Relaxed);
        let mut last = 0;
        for (at, piece) in framing::pieces(&decision).unwrap_or_default().into_iter().enumerate() {
            let added = self.link.report(&subject, &format!("{id}-{at}"), piece, is_over).await.map_err(failed)?;
            last = added.ok_or_else(|| failed("no server could be reached".to_owned()))?;
        }
        while self.next <= last {
            if !self.read_next().await? {
                if is_over() {
                    return Err(failed("it cannot be read".to_owned()));
                }
                tokio::time::sleep(POLL).await;
            }
        }
        Ok(())
    }

    /// Takes the next message of the stream, if there is one.
    async fn read_next(&mut self) -> Result<bool, Error> {
        let message = self.link.read(self.load.run, self.load.trial, self.next).await?;
        let Some((sender, piece)) = message else { return Ok(false) };
        let sender = sender.to_string();
        self.next += 1;
        if self.assemblers.len() < SENDERS_MAX || self.assemblers.contains_key(&sender) {
            // Agents send only readable pieces: others come from strangers.
            if let Ok(Some(report)) = self.assemblers.entry(sender).or_default().take(&piece) {
                self.parts.take(report);
            }
        }
        Ok(true)
    }

    /// Hands over the seconds that are whole. True as long as somebody listens.
    fn hand_over(&mut self) -> bool {
        while let Some(batch) = self.parts.take_next() {
            if self.out.send(batch).is_err() {
                return false;
            }
        }
        true
    }

    async fn follow(&mut self) -> Result<(), Error> {
        let listening = self.link.client.subscribe(subjects::alive(self.load.run, self.load.trial)).await;
        let mut alive = listening.map_err(self.link.failed("listen to agents"))?;
        let mut silence = Silence::new(Instant::now(), self.link.connects());
        let mut told_to_stop = None::<Instant>;
        let mut is_heard = true;
        while !self.parts.are_over() {
            self.look(&mut silence, &mut alive).await?;
            is_heard = is_heard && self.hand_over();
            if let Some((agent, reason)) = self.parts.failed() {
                return Err(Error::Refused { agent: agent.to_owned(), reason: reason.to_owned() });
            }
            if told_to_stop.is_none() && (!is_heard || self.stop.load(Ordering::Relaxed)) {
                told_to_stop = Some(Instant::now());
                self.stop_all().await;
            }
            let is_late = told_to_stop.is_some_and(|at| at.elapsed() > self.load.plan.drain + END_TIMEOUT);
            self.lose_the_silent(&mut silence, is_late, told_to_stop.is_some()).await?;
        }
        self.hand_over();
        if let Some(reason) = self.parts.all_lost() {
            return Err(Error::AllLost { reason: reason.to_owned() });
        }
        self.close_eyes(&mut silence, &mut alive).await
    }

    /// Follows the agents that look until an instant, or until it is enough.
    async fn follow_until(
        &mut self,
        until: Instant,
        silence: &mut Silence,
        alive: &mut Subscriber,
        is_enough: impl Fn(&Parts) -> bool,
    ) -> Result<(), Error> {
        while Instant::now() < until && self.parts.eyes().next().is_some() && !is_enough(&self.parts) {
            self.look(silence, alive).await?;
            if self.parts.eyes().all(|agent| silence.of(agent, Instant::now()).is_some()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Shows that the coordinator is alive, hears which agents are, and reads what came into the stream.
    async fn look(&mut self, silence: &mut Silence, alive: &mut Subscriber) -> Result<(), Error> {
        if self.shown.is_none_or(|at| at.elapsed() >= ALIVE_EVERY) {
            self.shown = Some(Instant::now());
            self.link.say(subjects::coordinator(self.load.run), &Alive { agent: String::new() }).await;
        }
        while self.read_next().await? {}
        if let Some(records) = self.parts.take_seen() {
            (self.see)(records);
        }
        // Signs of life are read last: reading the stream may have waited 5 s for a server that was down.
        let until = tokio::time::Instant::now() + POLL;
        while let Ok(Some(message)) = tokio::time::timeout_at(until, alive.next()).await {
            if let Ok(Alive { agent }) = serde_json::from_slice(&message.payload) {
                silence.hear(&agent, Instant::now());
            }
        }
        if let Some(is_there) = silence.connection(self.link.is_connected(), self.link.connects(), Instant::now()) {
            (self.tell)(AgentsEvent::Connection { is_there });
        }
        Ok(())
    }

    /// Sees to the parts that agents have left, and declares those of silent agents lost, of all agents if the load should long
    /// have ended.
    async fn lose_the_silent(&mut self, silence: &mut Silence, is_late: bool, is_ending: bool) -> Result<(), Error> {
        let may_be_taken_over = !is_ending && self.when_lost == WhenLost::TakeOver && can_be_taken_over(self.load.plan);
        for (given, reason) in self.parts.take_left() {
            (self.tell)(AgentsEvent::Lost { agent: given.agent.clone(), reason });
            if may_be_taken_over {
                self.hand_on(&given, silence).await?;
            }
        }
        let now = Instant::now();
        let running: Vec<(usize, Given)> =
            self.parts.running().map(|(number, given)| (number, given.clone())).collect();
        for (part, given) in running {
            let silent = silence.of(&given.agent, now);
            let reason = match silent {
                Some(silent) => format!("was not heard from for {:.1} s", silent.as_secs_f64()),
                None if is_late => "did not end when it was told to".to_owned(),
                None => continue,
            };
            (self.tell)(AgentsEvent::Lost { agent: given.agent.clone(), reason: reason.clone() });
            self.decide(Report::Lost(Lost { part, reason })).await?;
            self.stop_part(part, &given.agent).await;
            if may_be_taken_over {
                self.hand_on(&given, silence).await?;
            }
        }
        Ok(())
    }

    /// Gives the threads of a lost part to the agent with the fewest for its cores, from a second on that has not begun.
    async fn hand_on(&mut self, lost: &Given, silence: &Silence) -> Result<(), Error> {
        let (link, load) = (self.link, self.load);
        let Some(begun) = self.parts.begun() else { return Ok(()) };
        let load_of = |agent: &str| {
            let own = self.parts.running().filter(|(_, given)| given.agent == agent);
            own.map(|(_, given)| given.part.threads).sum::<usize>()
        };
        let now = Instant::now();
        let others = self.parts.running().map(|(_, given)| given);
        let others = others.filter(|given| given.agent != lost.agent && silence.of(&given.agent, now).is_none());
        let Some(next) = others.min_by_key(|given| load_of(&given.agent) * 1000 / given.cores.max(1)).cloned() else {
            return Ok(());
        };
        let elapsed_ns = self.clock.now_ns() - begun.start_ns;
        let elapsed = Duration::from_nanos(elapsed_ns.max(0) as u64);
        let (from_second, _) = second_after(load.plan, elapsed + TAKE_OVER_AFTER);
        let start_ns = begun.start_ns.saturating_add(next.clock.offset_ns);
        let part = LoadPart { start_ns, from_second, ..lost.part };
        let Given { agent: name, labels, cores, clock, .. } = next;
        let number = self.parts.len();
        self.give(Chosen { name, labels, cores, clock, watches: Vec::new(), receives: false }, part).await?;
        let given = self.parts.running().find(|(found, _)| *found == number).map(|(_, given)| given.clone());
        let Some(given) = given else { return Ok(()) };
        if let Err(error) = assign(link, load, begun.load, number, &given).await {
            self.decide(Report::Lost(Lost { part: number, reason: format!("could not take over: {error}") })).await?;
        }
        Ok(())
    }

    async fn stop_part(&self, number: usize, agent: &str) {
        let stop = Stop { run: self.load.run.to_owned(), trial: self.load.trial, number: Some(number) };
        // The agent may be gone.
        let _ = self.link.client.publish(subjects::command(agent, "stop"), json(&stop)).await;
    }

    /// Tells every agent of the trial to stop sending and looking.
    async fn end_all(&self) {
        let stop = Stop { run: self.load.run.to_owned(), trial: self.load.trial, number: None };
        let senders = self.parts.running().map(|(_, given)| given.agent.as_str());
        for agent in senders.chain(self.parts.eyes()) {
            let _ = self.link.client.publish(subjects::command(agent, "stop"), json(&stop)).await;
        }
        self.link.flush().await;
    }

    /// Tells every agent of the trial to stop sending.
    async fn stop_all(&self) {
        let running: Vec<(usize, String)> =
            self.parts.running().map(|(number, given)| (number, given.agent.clone())).collect();
        join_all(running.iter().map(|(number, agent)| self.stop_part(*number, agent))).await;
        self.link.flush().await;
    }
}

/// Sends the plan of a trial to an agent.
async fn deliver(link: &Link, load: DividedLoad<'_>, agent: &str, packed: &[Bytes]) -> Result<(), Error> {
    let trial = json(&(load.run, load.trial));
    for piece in packed {
        let mut body = BytesMut::with_capacity(trial.len() + 1 + piece.len());
        body.put_slice(&trial);
        body.put_u8(b'\n');
        body.put_slice(piece);
        link.ask::<()>(agent, "plan", body.freeze()).await?;
    }
    Ok(())
}

/// Tells an agent to send a part.
async fn assign(link: &Link, load: DividedLoad<'_>, id: i64, number: usize, given: &Given) -> Result<(), Error> {
    let assignment = Assignment {
        run: load.run.to_owned(),
        trial: load.trial,
        load: id,
        number,
        part: given.part,
        alone_ms: ALONE.as_millis() as u64,
    };
    link.ask::<()>(&given.agent, "work", json(&assignment)).await
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use narrows_model::load::{
        Connections, Cookies, Flow, LoadModel, LoadPlan, Protocol, RequestTemplate, Retry, Scenario, Template,
        ThinkTime,
    };

    /// One scenario that requests `/`.
    pub(crate) fn plan(model: LoadModel) -> LoadPlan {
        let request = RequestTemplate {
            method: "GET".into(),
            path: Template::text("/"),
            headers: Vec::new(),
            body: None,
            host: "test".into(),
        };
        LoadPlan {
            targets: vec![([127, 0, 0, 1], 9).into()],
            client_addresses: Vec::new(),
            protocol: Protocol::Http1,
            tls: None,
            scenarios: vec![Scenario {
                name: "a".into(),
                model,
                warmup: Duration::ZERO,
                flows: vec![Flow::single(request)],
                cookies: Cookies::Ignored,
                think_time: ThinkTime::default(),
                pace: None,
            }],
            data: Vec::new(),
            tracing: None,
            timeout: Duration::from_secs(5),
            drain: Duration::from_secs(5),
            retry: Retry::Idempotent,
            seed: 1,
            threads: 1,
            connections: Connections::KeepAlive,
        }
    }
}
