//! A hub that several processes run together, each of them a *node* with some of its partitions.
//!
//! Nodes know of each other from a store that they share. Each says again and again that it is alive, and computes for
//! itself, from who is alive and who has what, which partitions it should have: it gives back one that is another's, and
//! takes one that is free or whose node is silent. To take a partition raises its epoch, and the store refuses what
//! former owners write. Messages between partitions of different nodes, and requests of clients, go over the store's bus,
//! which may lose them: unacknowledged messages are sent again, and repeated ones are passed over.
//!
//! There is no consensus here and no leader: the store decides who takes a partition, everything else may be wrong for a
//! while without harm.

mod advice;
mod balance;
mod calls;
mod control;
mod directory;
mod exchange;
pub(crate) mod exclusion;
mod farewell;
mod lending;
mod mail;
mod metrics;
pub(crate) mod moves;
mod options;
mod reassembly;
pub(crate) mod record;
mod serve;
pub(crate) mod steward;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unreliable;
mod view;
mod watch;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use advice::{Advice, AdviceReason, advise};
pub use options::NodeOptions;
pub use record::PartitionLoad;
pub use view::{NodeView, OwnedPartition};
pub use watch::NodeWatch;

use bytes::Bytes;

use calls::{Calls, Carrier};
use control::Keeper;
use directory::Directory;
use exchange::Exchange;
use farewell::Farewell;
use lending::Lent;
use mail::{Control, NodeStatus};
use moves::Leave;
use reassembly::Reassembly;
use record::Identity;
use serve::PeerRequests;

use crate::client::Client;
use crate::codec::{FORMAT, Packet};
use crate::error::Error;
use crate::hub::{self, Engine, Fence, Health, HubStats, Meter, Post, health};
use crate::ids::PartitionId;
use crate::options::HubOptions;
use crate::partition::Input;
use crate::program::Program;
use crate::store::{Batching, HubShape, SharedStore, Store};

/// A node of a hub that several processes run together. Dropping it closes it.
pub struct Node {
    client: Client,
    shared: Arc<Shared>,
    running: Mutex<Option<Threads>>,
}

/// State that exists only while the node runs.
struct Threads {
    control: JoinHandle<()>,
    keeper: JoinHandle<()>,
    runtime: tokio::runtime::Runtime,
}

/// State that all parts of a node use.
struct Shared {
    store: Arc<dyn SharedStore>,
    options: NodeOptions,
    identity: Identity,
    run: u64,
    engine: Arc<Engine>,
    meters: Vec<Arc<Meter>>,
    fence: Arc<Fence>,
    directory: Arc<Directory>,
    exchange: Arc<Exchange>,
    calls: Arc<Calls>,
    served: Arc<PeerRequests>,
    parts: Reassembly,
    lent: Lent,
    farewell: Farewell,
    control: Control,
}

impl Node {
    /// Opens a hub, new or kept in `store`, together with the other nodes that have it open. It returns once the node is
    /// known to the others; its share of the partitions comes to it afterwards, and its clients reach all partitions
    /// wherever they are.
    ///
    /// # Errors
    /// [`Error::BadOption`], or [`Error::Store`] if the store is out of reach, damaged, foreign, or in use by a process that
    /// runs all partitions alone ([`Hub::open`](crate::Hub::open)).
    pub fn open(
        store: Arc<dyn SharedStore>,
        program: impl Program,
        hub: HubOptions,
        node: NodeOptions,
    ) -> Result<Self, Error> {
        hub.check()?;
        node.check()?;
        let shape = store.open_or_create(HubShape { partitions: hub.partitions, format: FORMAT })?;
        let identity = Identity::next(&node.name, store.number()?, store.said()?, Instant::now());
        let run = random();
        let directory = Arc::<Directory>::default();
        let exchange = Arc::new(Exchange::new(run, Arc::clone(&directory)));
        let post = Arc::new(Post::new(shape.partitions, Some(Arc::clone(&exchange) as _)));
        let fence = Arc::new(Fence::new(node.silence()));
        let meters = hub::meters(&hub, &post);
        let runtime = hub::runtime(&hub)?;
        let (requests_max, instruments) = (hub.requests_max, hub.meter.clone());
        let base: Arc<dyn Store> = Arc::clone(&store) as _;
        let (engine, keeper) = hub::engine(base, Arc::new(program), hub, &post, Some(Arc::clone(&fence)), &runtime)?;
        let handle = runtime.handle();
        let calls = Calls::new(
            run,
            node.request_timeout,
            Arc::clone(&post),
            Arc::clone(&directory),
            Arc::clone(&exchange),
            handle.clone(),
        );
        let calls = Arc::new(calls);
        let served =
            PeerRequests::new(run, Arc::clone(&engine), Arc::clone(&fence), Arc::clone(&exchange), handle.clone());
        let client = Client::new(post, Some(Arc::new(Carrier(Arc::clone(&calls)))), requests_max, handle.clone());
        let shared = Arc::new(Shared {
            store,
            options: node,
            identity,
            run,
            engine,
            meters,
            fence,
            directory,
            exchange,
            calls,
            served: Arc::new(served),
            parts: Reassembly::default(),
            lent: Lent::default(),
            farewell: Farewell::default(),
            control: Control::default(),
        });
        if let Some(meter) = &instruments {
            metrics::observe(meter, &shared);
        }
        match begin(&shared) {
            Ok(control) => {
                let running = Mutex::new(Some(Threads { control, keeper, runtime }));
                Ok(Self { client, shared, running })
            }
            Err(error) => {
                // If that fails it is forgotten later.
                let _ = shared.store.forget(&shared.identity.key());
                shared.end();
                let _ = keeper.join();
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// Sends requests to this hub, wherever its partitions are. Clients are cheap to clone and outlive the node; their
    /// calls then fail with [`Error::Closed`].
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.options.name
    }

    /// How each partition does, in order, as far as this node knows.
    #[must_use]
    pub fn health(&self) -> Vec<Health> {
        let NodeStatus { errors, members, .. } = self.shared.control.seen();
        let owners = self.shared.directory.owners();
        let node_of = |id: PartitionId| {
            let owner = owners.get(usize::from(id.0)).and_then(|owner| owner.node.as_deref());
            owner.map(|key| members.name(key).to_owned())
        };
        let of = |(id, meter): (PartitionId, &Arc<Meter>)| match self.shared.engine.post().inbox(id) {
            Some(inbox) => health::of(&inbox, meter, health::HELD_UP),
            None => errors.get(&id).cloned().map_or_else(|| Health::Elsewhere(node_of(id)), Health::Stopped),
        };
        self.shared.engine.post().partitions().zip(&self.shared.meters).map(of).collect()
    }

    /// The partitions in figures, as of each one's last turn on this node. What counts up does so since the partition
    /// came here last.
    #[must_use]
    pub fn stats(&self) -> HubStats {
        HubStats { partitions: self.shared.meters.iter().map(|meter| meter.read()).collect() }
    }

    /// All nodes of the hub that have not been forgotten, with their partitions, in order of their names.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeView> {
        view::all(&self.shared.control.seen().members, &self.shared.directory.owners(), Instant::now())
    }

    /// The partitions that run here now, in order.
    #[must_use]
    pub fn partitions(&self) -> Vec<PartitionId> {
        self.shared.running()
    }

    /// How long the node may still act without another beat; `None` if its lease has run out, and it does nothing until it
    /// reaches the store again.
    #[must_use]
    pub fn lease_left(&self) -> Option<Duration> {
        self.shared.fence.left()
    }

    /// Why the node has ended without being closed, if it has: another node was opened under its name. The program
    /// should then close it and end, because its clients no longer reach anything.
    #[must_use]
    pub fn ended(&self) -> Option<String> {
        self.shared.control.seen().ended
    }

    /// Gives all partitions back in order and has the others take them. Activities that are under way are left to
    /// themselves and run again elsewhere. The node then stays until no other node waits for a response of it, for at most
    /// two seconds if one does not respond. Closing twice is no error.
    ///
    /// # Errors
    /// [`Error::Store`] if the store refuses to forget the node; it is then lost to the others once it has been silent for
    /// as long as its lease.
    pub fn close(&self) -> Result<(), Error> {
        self.end(Leave::Orderly)
    }

    /// Stops at once and gives nothing back, as a crash would. For tests.
    pub fn halt(&self) {
        // A crash has nobody to report to.
        let _ = self.end(Leave::AtOnce);
    }

    fn end(&self, how: Leave) -> Result<(), Error> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Threads { control, keeper, runtime }) = running else { return Ok(()) };
        self.shared.engine.end_activities();
        self.shared.control.end(how);
        let _ = control.join();
        let is_orderly = how == Leave::Orderly;
        let forgotten = if is_orderly { self.shared.store.forget(&self.shared.identity.key()) } else { Ok(()) };
        if is_orderly {
            self.shared.exchange.announce();
        }
        self.shared.end();
        let _ = keeper.join();
        runtime.shutdown_background();
        Ok(forgotten?)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // An error has no caller to go to here; `close` reports it.
        let _ = self.close();
    }
}

impl Shared {
    /// Processes a packet from the bus. It does not wait.
    fn receive(&self, bytes: &[u8]) {
        // An unreadable packet was damaged on its way, or comes from a program of another version. It is lost.
        let Ok(packet) = Packet::decode(bytes) else { return };
        match packet {
            Packet::Messages { from, to, first, messages } => self.deliver(from, to, first, messages),
            Packet::Acknowledged { by, to, up_to } => self.put(to, Input::Acknowledged { by, up_to }),
            Packet::Probe { from, to, up_to } => self.put(to, Input::Probe { from, up_to }),
            Packet::Missing { by, to, first, before } => self.put(to, Input::Missing { by, first, before }),
            Packet::News => self.control.news(),
            Packet::Request(request) => self.served.take(request),
            Packet::Cancel { from, number } => self.served.cancel(from, number),
            Packet::Response { to, number, outcome } if to == self.run => self.calls.respond(number, outcome),
            Packet::Farewell { from, address } => {
                if self.calls.depart(from) {
                    self.exchange.send(&address, &Packet::Heard { by: self.run, to: from });
                }
            }
            Packet::Heard { by, to } if to == self.run => self.farewell.heard(by),
            Packet::Response { .. } | Packet::Heard { .. } => {}
            Packet::Fragment { of, number, at, count, bytes } => {
                if let Some(whole) = self.parts.take(of, number, at, count, &bytes)
                    // Nothing that comes in parts has parts itself.
                    && let Ok(packet) = Packet::decode(&whole)
                    && !matches!(packet, Packet::Fragment { .. })
                {
                    self.receive(&whole);
                }
            }
        }
    }

    fn deliver(&self, from: PartitionId, to: PartitionId, first: u64, messages: Vec<crate::message::Message>) {
        if self.store.batching() == Batching::Group {
            return self.put(to, Input::Messages { from, first, messages });
        }
        for (first, message) in (first..).zip(messages) {
            self.put(to, Input::Messages { from, first, messages: vec![message] });
        }
    }

    /// Gives an input to a partition, if it is here. If not, whoever sent it finds it elsewhere.
    fn put(&self, to: PartitionId, input: Input) {
        if let Some(inbox) = self.engine.post().inbox(to) {
            // One that ends takes nothing in.
            let _ = inbox.push(input);
        }
    }

    /// Forgets what nodes have left behind that are not alive.
    fn prune(&self) {
        self.parts.prune(|run| self.directory.is_alive(run));
        self.calls.prune(|run| self.directory.is_alive(run));
        self.served.prune(self.options.silence(), |run| self.directory.is_alive(run));
    }

    /// The partitions that run here, in order.
    fn running(&self) -> Vec<PartitionId> {
        let post = self.engine.post();
        let runs = |id: &PartitionId| post.inbox(*id).is_some_and(|inbox| !inbox.is_closed());
        post.partitions().filter(runs).collect()
    }

    fn end(&self) {
        self.engine.end_activities();
        self.engine.end_chores();
        self.exchange.close();
    }
}

/// Opens the bus, makes the node known and starts its thread.
fn begin(shared: &Arc<Shared>) -> Result<JoinHandle<()>, Error> {
    let receiver: Weak<Shared> = Arc::downgrade(shared);
    let receive = move |bytes: Bytes| {
        if let Some(shared) = receiver.upgrade() {
            shared.receive(&bytes);
        }
    };
    shared.exchange.connect(shared.store.bus().open(&shared.identity.key(), Arc::new(receive))?);
    let mut keeper = Keeper::new(Arc::clone(shared));
    keeper.join()?;
    exclusion::refuse_process(&*shared.store, &shared.identity.key())?;
    shared.exchange.announce();
    hub::thread("node".to_owned(), move || keeper.run())
}

/// A number that no other run of any node has: 64 random bits of the operating system.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
