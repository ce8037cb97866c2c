//! Work that one frame has no room for is spread over many, and survives a crash in between.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::client::{Filter, Status};
use crate::event::Caller;
use crate::ids::{Epoch, InstanceId, Name, PartitionId, Position, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::options::HubOptions;
use crate::partition::bounds::Bounds;
use crate::partition::testing::{EmptyProgram, Scripts, id, number};
use crate::partition::{Effect, Input, Partition, Request, RequestKind, Response};
use crate::program::Program;
use crate::store::{Batching, FrameBatch, HubShape, MemoryStore, Store};

const HERE: PartitionId = PartitionId(0);
const THERE: PartitionId = PartitionId(1);
/// Far more than one frame has room for, in the small bounds.
const MANY: u32 = 12_000;

/// The first partition of a hub, with its log.
struct Bench {
    store: Arc<MemoryStore>,
    epoch: Epoch,
    partitions: u16,
    partition: Partition,
    longest: usize,
}

fn recovered(store: &Arc<MemoryStore>, partitions: u16, program: impl Program) -> Partition {
    let options = HubOptions::default();
    let kept: Arc<dyn Store> = Arc::clone(store) as Arc<dyn Store>;
    let mut partition = Partition::new(HERE, partitions, Arc::new(program), kept, &options);
    partition.recover(&**store).expect("its own log");
    partition
}

impl Bench {
    fn new(partitions: u16, program: impl Program) -> Self {
        let store = Arc::new(MemoryStore::new());
        store.open_or_create(HubShape { partitions, format: crate::codec::FORMAT }).expect("a new hub");
        let epoch = store.acquire(HERE, "test").expect("a new hub");
        let partition = recovered(&store, partitions, program);
        Self { store, epoch, partitions, partition, longest: 0 }
    }

    /// Makes frames short from here on.
    fn shorten(&mut self) {
        self.partition.settings.bounds =
            Bounds { frame_bytes: 4_000, step_bytes: 8_000, rest_bytes: 4_000, ..Bounds::new(Batching::Group) };
        self.longest = 0;
    }

    fn crash(&mut self, program: impl Program) {
        self.partition = recovered(&self.store, self.partitions, program);
        self.shorten();
    }

    /// One turn, durable. Gives what leaves.
    fn turn(&mut self, inputs: &mut dyn Iterator<Item = Input>) -> Vec<Effect> {
        if let Some(sealed) = self.partition.turn(inputs, Time(1)) {
            self.longest = self.longest.max(sealed.frame.len());
            let (position, mut batch) = (sealed.position, FrameBatch::default());
            batch.push(sealed.frame);
            self.store.append(HERE, self.epoch, position, &batch).expect("it is in memory");
            self.partition.confirm(Position(position.0 + 1));
        }
        self.partition.effects().drain(..).collect()
    }

    /// Turns until all is at rest, with messages within the partition.
    fn take(&mut self, inputs: impl IntoIterator<Item = Input>) -> Vec<Effect> {
        let (mut inputs, mut left) = (inputs.into_iter().collect::<VecDeque<_>>(), Vec::new());
        for _ in 0..10_000 {
            let effects = self.turn(&mut std::iter::from_fn(|| inputs.pop_front()));
            let is_due = self.partition.next_due().is_some_and(|due| due <= Time(1));
            if effects.is_empty() && inputs.is_empty() && !is_due && !self.partition.is_busy() {
                return left;
            }
            for effect in effects {
                match effect {
                    Effect::Send { to: HERE, first, messages } => {
                        inputs.push_back(Input::Messages { from: HERE, first, messages });
                    }
                    Effect::Acknowledge { to: HERE, up_to } => {
                        inputs.push_back(Input::Acknowledged { by: HERE, up_to });
                    }
                    effect => left.push(effect),
                }
            }
        }
        panic!("it never comes to rest");
    }

    /// An orchestration that has ended, with many sub-orchestrations, which have too.
    fn fan(&mut self) {
        let (name, input) = (Name::Static("Fan"), number(MANY.into()));
        let start = MessageKind::Start { name, version: None, input, parent: None, at: None, reuse: Reuse::Never };
        let sent = self.take([deliver(fan(), start)]);
        let done = messages(&sent).filter_map(|message| match message.kind {
            MessageKind::Start { parent: Some(Caller { instance: to, generation, id }), .. } => {
                let kind = MessageKind::SubDone { generation, id, result: Ok(number(0)) };
                Some(Message { to, kind })
            }
            _ => None,
        });
        self.take([Input::Messages { from: THERE, first: 1, messages: done.collect() }]);
        assert_eq!(self.status(&fan()), Some(Status::Completed));
    }

    fn status(&self, of: &InstanceId) -> Option<Status> {
        self.partition.table.handle(of).map(|handle| self.partition.table.known(handle).status())
    }
}

/// An orchestration that lives here.
fn fan() -> InstanceId {
    (0..).map(|number| id(&format!("fan{number}"))).find(|id| id.partition(2) == HERE).expect("there are many")
}

fn request(kind: RequestKind) -> Input {
    let (reply, _) = oneshot::channel();
    Input::Request(Request { kind, reply })
}

fn deliver(to: InstanceId, kind: MessageKind) -> Input {
    request(RequestKind::Deliver(Message { to, kind }))
}

fn messages(effects: &[Effect]) -> impl Iterator<Item = Message> {
    let sent = effects
        .iter()
        .filter_map(|effect| if let Effect::Send { messages, .. } = effect { Some(messages) } else { None });
    sent.flatten().cloned()
}

fn purged_there(effects: &[Effect]) -> usize {
    messages(effects).filter(|message| message.kind == MessageKind::Purge).count()
}

/// How many were purged, by response.
fn counts(effects: &[Effect]) -> Vec<u64> {
    let count = |effect: &Effect| match effect {
        Effect::Respond(_, Ok(Response::Count(count, None))) => Some(*count),
        _ => None,
    };
    effects.iter().filter_map(count).collect()
}

#[test]
fn many_sub_orchestrations_are_purged_in_many_frames() {
    for partitions in [1, 2] {
        let mut bench = Bench::new(partitions, Scripts);
        bench.fan();
        let here = bench.partition.counts().instances;
        bench.shorten();
        // Two clients purge it; both get the number.
        let effects = bench.take([request(RequestKind::Purge(fan())), request(RequestKind::Purge(fan()))]);
        assert_eq!(purged_there(&effects) as u64, u64::from(MANY) + 1 - here);
        assert_eq!(counts(&effects), [here, 0]);
        assert!(bench.longest <= bench.partition.settings.bounds.frame_bytes_max(), "{}", bench.longest);
        let counts = bench.partition.counts();
        assert_eq!((counts.instances, counts.timers), (0, 0));
    }
}

#[test]
fn all_that_have_ended_are_purged_in_many_frames() {
    let mut bench = Bench::new(1, Scripts);
    bench.fan();
    bench.shorten();
    let (mut from, mut sum) = (0, 0);
    loop {
        let effects = bench.take([request(RequestKind::PurgeAll(Filter::default(), from))]);
        let Some(Effect::Respond(_, Ok(Response::Count(count, next)))) = effects.last() else { panic!("{effects:?}") };
        sum += count;
        let Some(next) = next else { break };
        from = *next;
    }
    assert_eq!(sum, u64::from(MANY) + 1);
    assert_eq!(bench.partition.counts().instances, 0);
}

#[test]
fn a_purge_goes_on_after_a_crash() {
    let mut bench = Bench::new(2, Scripts);
    bench.fan();
    bench.shorten();
    let effects = bench.turn(&mut [request(RequestKind::Purge(fan()))].into_iter());
    assert_eq!(counts(&effects), [0; 0], "one frame has no room for it");
    assert_eq!(bench.status(&fan()), Some(Status::Completed), "it is forgotten last");
    bench.crash(Scripts);
    let effects = bench.take([]);
    assert!(purged_there(&effects) > 0);
    let counts = bench.partition.counts();
    assert_eq!((counts.instances, counts.timers), (0, 0));
    assert!(bench.longest <= bench.partition.settings.bounds.frame_bytes_max(), "{}", bench.longest);
}

#[test]
fn all_that_is_kept_for_a_parked_orchestration_is_dropped_at_once() {
    let mut bench = Bench::new(1, EmptyProgram);
    let (name, input) = (Name::Static("Wait"), number(1));
    let start = MessageKind::Start { name, version: None, input, parent: None, at: None, reuse: Reuse::Never };
    bench.take([deliver(id("waiting"), start)]);
    let go = || MessageKind::Raise { name: Name::Static("go"), data: number(1) };
    bench.take((0..MANY).map(|_| deliver(id("waiting"), go())));
    assert_eq!(bench.status(&id("waiting")), Some(Status::Parked));
    assert_eq!(bench.partition.counts().timers, u64::from(MANY) + 1);
    bench.shorten();
    bench.take([deliver(id("waiting"), MessageKind::Terminate { reason: "enough".to_owned() })]);
    assert!(bench.longest < 1_000, "{}", bench.longest);
    assert_eq!((bench.status(&id("waiting")), bench.partition.counts().timers), (Some(Status::Terminated), 0));
    bench.crash(Scripts);
    assert_eq!((bench.status(&id("waiting")), bench.partition.counts().timers), (Some(Status::Terminated), 0));
}
