//! Random requests of clients: scripts, identifiers that are used again, everything that can be done to an instance.

use narrows_testing::Chance;

use crate::client::{Filter, Status};
use crate::ids::{EntityId, InstanceId, PartitionId, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::partition::input::{RequestKind, Values};
use crate::partition::simulation::code::{LEDGERS, NOTE, Note, PLAY, Reaction, SAY, Script, Step, Token, ledger};
use crate::partition::simulation::node::Setting;
use crate::payload::Payload;

/// Identifiers that clients start orchestrations under.
const INSTANCES: usize = 8;
/// Orchestrations that one request starts.
const STARTS_MAX: usize = 24;
/// The first of the steps that may do too much at once.
const WIDE: usize = 18;
/// How much they do: at most so many things, and bytes of each.
const WIDTHS_MAX: [usize; 3] = [3, 40, 160];
const WIDE_BYTES: [usize; 2] = [1 << 10, 8 << 10];
/// Steps of one script.
const STEPS_MAX: usize = 6;

/// A client's request, kept to check its response.
#[derive(Clone, Debug)]
pub(super) enum Wish {
    /// That the script of this beginning starts.
    Start {
        beginning: String,
    },
    /// The same, if there is no instance of this name.
    StartUnlessThere,
    Raise {
        to: InstanceId,
        token: Token,
    },
    Note {
        token: Token,
    },
    Wait {
        id: InstanceId,
    },
    /// Of a request with many parts: of each part on its own.
    Each(Vec<Wish>),
    Other,
}

/// A request on its way.
pub(super) struct RandomRequest {
    pub(super) to: PartitionId,
    pub(super) kind: RequestKind,
    pub(super) wish: Wish,
    pub(super) text: String,
}

/// Frequencies and sizes of random requests; different for each schedule.
pub(super) struct Workload {
    partitions: u16,
    request_weights: Vec<usize>,
    steps: Vec<usize>,
    /// The size of large payloads; 0 if there are none.
    large_bytes: usize,
    /// Of the steps that may do too much.
    width_max: usize,
    wide_bytes: usize,
    scripts: u32,
    tokens: u32,
}

impl Workload {
    pub(super) fn new(setting: &Setting, chance: &mut Chance) -> Self {
        let mut request_weights: Vec<usize> = (0..13).map(|_| chance.below(4)).collect();
        request_weights[0] += 3;
        let mut steps: Vec<usize> = (0..21).map(|_| chance.below(4)).collect();
        steps[0] += 1;
        if setting.step_bytes.is_none() {
            steps.truncate(WIDE);
        }
        let Setting { partitions, large_bytes, .. } = *setting;
        let (width_max, wide_bytes) = (chance.pick(&WIDTHS_MAX), chance.pick(&WIDE_BYTES));
        Self { partitions, request_weights, steps, large_bytes, width_max, wide_bytes, scripts: 0, tokens: 0 }
    }

    /// Next requests of clients, in this order.
    pub(super) fn draw(&mut self, now: Time, chance: &mut Chance) -> Vec<RandomRequest> {
        let id = self.instance(chance);
        let tell = |kind| RequestKind::Deliver(Message { to: id.clone(), kind });
        let reason = || "by chance".to_owned();
        let (kind, wish) = match chance.weighed(&self.request_weights) {
            0 => return vec![self.start(now, chance)],
            1 => {
                let token = self.token();
                let kind = MessageKind::Raise { name: SAY.name().into(), data: encode(&token) };
                (tell(kind), Wish::Raise { to: id.clone(), token })
            }
            2 => return vec![self.note(chance)],
            3 => (tell(MessageKind::Terminate { reason: reason() }), Wish::Other),
            4 => (tell(MessageKind::Suspend { reason: reason() }), Wish::Other),
            5 => (tell(MessageKind::Resume { reason: reason() }), Wish::Other),
            6 => (RequestKind::Purge(id.clone()), Wish::Other),
            7 => (RequestKind::Wait(id.clone()), Wish::Wait { id: id.clone() }),
            8 => (RequestKind::History(id.clone()), Wish::Other),
            9 => return vec![self.walk(chance)],
            10 => return self.use_again(&id, chance),
            11 => return vec![self.start_many(&id, chance)],
            _ => (RequestKind::Get(id.clone()), Wish::Other),
        };
        vec![self.drawn(&id, kind, wish)]
    }

    /// An orchestration is ended and purged, and another one started under its identifier, which waits for a response at
    /// once, as the first one may have.
    fn use_again(&mut self, id: &InstanceId, chance: &mut Chance) -> Vec<RandomRequest> {
        let reason = "its identifier is used again".to_owned();
        let terminate = Message { to: id.clone(), kind: MessageKind::Terminate { reason } };
        let first = Step::Call { ledger: chance.below(LEDGERS.into()) as u8 };
        let steps = [vec![first], self.script(chance, 0)].concat();
        vec![
            self.drawn(id, RequestKind::Deliver(terminate), Wish::Other),
            self.drawn(id, RequestKind::Purge(id.clone()), Wish::Other),
            self.start_as(id, steps, None, Reuse::Never),
        ]
    }

    /// The request for an orchestration that sleeps for a second, and its identifier.
    pub(super) fn sleeper(&mut self) -> (RandomRequest, InstanceId) {
        let script = Script::new("sleeper".to_owned(), vec![Step::Sleep { ms: 1_000 }]);
        let id = InstanceId::new("sleeper").expect("an identifier");
        let wish = Wish::Start { beginning: script.beginning() };
        let (name, input) = (PLAY.name().into(), encode(&script));
        let kind = MessageKind::Start { name, version: None, input, parent: None, at: None, reuse: Reuse::Never };
        (self.drawn(&id, RequestKind::Deliver(Message { to: id.clone(), kind }), wish), id)
    }

    /// A request that writes something, whatever is there.
    pub(super) fn probe(&mut self, chance: &mut Chance) -> RequestKind {
        self.note(chance).kind
    }

    /// The request that gives a suspended orchestration its events again.
    pub(super) fn resume(&self, id: &InstanceId) -> RandomRequest {
        let kind = MessageKind::Resume { reason: "it is over".to_owned() };
        self.drawn(id, RequestKind::Deliver(Message { to: id.clone(), kind }), Wish::Other)
    }

    fn drawn(&self, id: &InstanceId, kind: RequestKind, wish: Wish) -> RandomRequest {
        let text = format!("{kind:?}").chars().take(400).collect();
        RandomRequest { to: id.partition(self.partitions), kind, wish, text }
    }

    fn start(&mut self, now: Time, chance: &mut Chance) -> RandomRequest {
        let steps = self.script(chance, 0);
        let reuse = chance.pick(&[Reuse::IfEnded, Reuse::IfEnded, Reuse::Never, Reuse::Ignore, Reuse::Terminate]);
        let later = Time(now.0 + 1_000 * chance.below(300) as u64);
        let at = chance.one_in(6).then_some(later);
        let to = self.instance(chance);
        self.start_as(&to, steps, at, reuse)
    }

    fn start_as(&mut self, to: &InstanceId, steps: Vec<Step>, at: Option<Time>, reuse: Reuse) -> RandomRequest {
        self.scripts += 1;
        let script = Script::new(format!("s{}", self.scripts), steps);
        let wish = match reuse {
            Reuse::Ignore => Wish::StartUnlessThere,
            _ => Wish::Start { beginning: script.beginning() },
        };
        let (name, input) = (PLAY.name().into(), encode(&script));
        let kind = MessageKind::Start { name, version: None, input, parent: None, at, reuse };
        let message = Message { to: to.clone(), kind };
        // The response to a single message reports what became of it, so messages go one at a time.
        self.drawn(to, RequestKind::Deliver(message), wish)
    }

    /// Starts many at once, as far as they are of one partition.
    fn start_many(&mut self, of: &InstanceId, chance: &mut Chance) -> RandomRequest {
        let to = of.partition(self.partitions);
        let (mut messages, mut wishes) = (Vec::new(), Vec::new());
        for _ in 0..1 + chance.below(STARTS_MAX) {
            let steps = (0..chance.below(3)).map(|_| self.step(chance, 1)).collect();
            let id = InstanceId::new(format!("m{}", self.scripts)).expect("an identifier");
            let RandomRequest { kind, wish, .. } = self.start_as(&id, steps, None, Reuse::IfEnded);
            if let (true, RequestKind::Deliver(message)) = (id.partition(self.partitions) == to, kind) {
                messages.push(message);
                wishes.push(wish);
            }
        }
        self.drawn(of, RequestKind::DeliverEach(messages), Wish::Each(wishes))
    }

    fn note(&mut self, chance: &mut Chance) -> RandomRequest {
        let token = self.token();
        let note = Note { token: token.clone(), then: then(chance) };
        let entity: EntityId = ledger(chance.below(LEDGERS.into()) as u8);
        let kind = MessageKind::Operate { operation: NOTE.name().into(), input: encode(&note), caller: None, at: None };
        let to = entity.instance().clone();
        let kind = RequestKind::Deliver(Message { to: to.clone(), kind });
        self.drawn(&to, kind, Wish::Note { token })
    }

    fn walk(&self, chance: &mut Chance) -> RandomRequest {
        let to = PartitionId(chance.below(self.partitions.into()) as u16);
        let filter = Filter { statuses: vec![chance.pick(&Status::ALL)], ..Filter::default() };
        let kind = match chance.below(3) {
            0 => RequestKind::Summary(filter, 0),
            1 => RequestKind::Query { filter, limit: 3, values: Values::With, from: 0 },
            _ => RequestKind::PurgeAll(filter, 0),
        };
        let text = format!("{kind:?} of {to}");
        RandomRequest { to, kind, wish: Wish::Other, text }
    }

    /// One of the few identifiers there are.
    fn instance(&self, chance: &mut Chance) -> InstanceId {
        numbered(chance.below(INSTANCES) as u32)
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        // Each is a separate client: they do not wait for each other's responses, so the order is open.
        Token { sender: format!("client{}", self.tokens), number: 1, is_loose: false }
    }

    fn script(&self, chance: &mut Chance, depth: usize) -> Vec<Step> {
        let count = chance.below(STEPS_MAX);
        (0..count).map(|_| self.step(chance, depth)).collect()
    }

    fn step(&self, chance: &mut Chance, depth: usize) -> Step {
        let ms = chance.below(200) as u64;
        let number = chance.below(LEDGERS.into()) as u8;
        match chance.weighed(&self.steps) {
            1 => Step::Compute,
            2 => Step::Flaky,
            3 => Step::Fan { width: 1 + chance.below(5) as u32, bytes: 0 },
            4 => Step::Sleep { ms },
            5 => Step::Await { ms },
            6 => Step::Raise { to: self.instance(chance).to_string() },
            7 | 8 => Step::Signal { ledger: number, then: then(chance) },
            9 => Step::SignalLater { ledger: number, ms },
            10 => Step::Call { ledger: number },
            11 => Step::Refused { ledger: number },
            12 => {
                let ledgers = (0..LEDGERS).filter(|other| *other == number || chance.one_in(3)).collect();
                Step::Critical { ledgers }
            }
            13 if depth < 2 => Step::Sub { steps: self.script(chance, depth + 1) },
            14 if depth < 2 => Step::Detached { steps: self.script(chance, depth + 1) },
            15 => Step::Race { ms: ms / 4 },
            16 => {
                if chance.one_in(4) {
                    Step::Fail
                } else {
                    Step::Again
                }
            }
            17 => Step::Status,
            WIDE => Step::Fan { width: self.width(chance), bytes: self.wide_bytes },
            19 => Step::Echo { width: self.width(chance), bytes: self.wide_bytes },
            20 => Step::Occupy { width: self.width(chance), bytes: self.wide_bytes, ms },
            _ => Step::Work { bytes: if chance.one_in(4) { self.large_bytes } else { 0 } },
        }
    }

    fn width(&self, chance: &mut Chance) -> u32 {
        1 + chance.below(self.width_max) as u32
    }
}

fn numbered(number: u32) -> InstanceId {
    InstanceId::new(format!("i{number}")).expect("an identifier")
}

fn then(chance: &mut Chance) -> Reaction {
    match chance.below(6) {
        0 => Reaction::Tell(chance.below(LEDGERS.into()) as u8),
        1 => Reaction::Launch,
        _ => Reaction::Nothing,
    }
}

fn encode<T: serde::Serialize>(value: &T) -> Payload {
    Payload::encode(value).expect("JSON")
}
