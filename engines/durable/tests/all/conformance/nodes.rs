//! Three nodes that share a hub on a server. The client is of the first, which stays; the other two come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use narrows_durable::replay::{self, ReplayReport};
use narrows_durable::store::StoreError;
use narrows_durable::{Client, HubOptions, Node, NodeOptions, NodeView, Registry};
use narrows_durable_servers::open_shared;

use crate::servers::{Nats, WAIT};

/// Short, so that what a node that crashed had runs elsewhere soon, and long enough for a busy machine to beat in time.
const LEASE: Duration = Duration::from_secs(3);
/// How long a node stays that comes and goes.
const STAY: Duration = Duration::from_millis(100);

pub(crate) struct Nodes {
    /// The place of a node that comes and goes all the time.
    guest: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
    /// None only in the middle of a change.
    resident: Option<Node>,
    first: Node,
    place: Place,
    _server: Option<Nats>,
}

/// The hub that nodes share, and the code that they run.
#[derive(Clone)]
struct Place {
    url: String,
    code: fn() -> Registry,
}

impl Place {
    fn open(&self) -> Node {
        let (mut hub, mut node) = (HubOptions::default(), NodeOptions::default());
        (hub.partitions, node.lease) = (3, LEASE);
        Node::open(open_shared(&self.url).unwrap(), (self.code)(), hub, node).unwrap()
    }
}

impl Nodes {
    /// None, and says so, where there is no server.
    pub(crate) fn start(code: fn() -> Registry) -> Option<Self> {
        let (url, server) = match std::env::var("NARROWS_TEST_HUBS") {
            Ok(url) => (own_hub(&url), None),
            Err(_) => {
                let server = Nats::start()?;
                (server.url("conformance"), Some(server))
            }
        };
        let place = Place { url, code };
        let (first, resident) = (place.open(), Some(place.open()));
        let guest = Some(come_and_go(place.clone()));
        Some(Self { guest, resident, first, place, _server: server })
    }

    pub(crate) fn client(&self) -> Client {
        self.first.client()
    }

    /// Crashes a node, has another one take its place, and waits until what it had runs elsewhere: before that, a request
    /// may go to the node that is gone, and whether it was done is then unknown.
    pub(crate) fn crash(&mut self) {
        let node = self.resident.take().unwrap();
        node.halt();
        self.resident = Some(self.place.open());
        let has_some = |seen: &NodeView| seen.name == node.name() && !seen.partitions.is_empty();
        let begun = Instant::now();
        while self.first.nodes().iter().any(has_some) {
            assert!(begun.elapsed() < WAIT, "{} still has partitions", node.name());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Closes both nodes that stay in order, twice over, and has others take their places.
    pub(crate) fn close(&mut self) {
        let places = [self.resident.take().unwrap(), std::mem::replace(&mut self.first, self.place.open())];
        self.resident = Some(self.place.open());
        for node in places {
            node.close().unwrap();
            node.close().unwrap();
        }
    }

    /// Ends all, and replays what they leave.
    pub(crate) fn check(mut self) -> Result<ReplayReport, StoreError> {
        self.send_away();
        self.resident.take().unwrap().close().unwrap();
        self.first.close().unwrap();
        replay::check_hub(open_shared(&self.place.url).unwrap(), Arc::new((self.place.code)()))
    }

    fn send_away(&mut self) {
        if let Some((is_over, guest)) = self.guest.take() {
            is_over.store(true, Ordering::Relaxed);
            guest.join().unwrap();
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.send_away();
    }
}

/// Opens a node, closes it after a while, and so on.
fn come_and_go(place: Place) -> (Arc<AtomicBool>, JoinHandle<()>) {
    let is_over = Arc::<AtomicBool>::default();
    let seen = Arc::clone(&is_over);
    let guest = std::thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            let node = place.open();
            std::thread::sleep(STAY);
            node.close().unwrap();
        }
    });
    (is_over, guest)
}

/// A hub on a server that no other test has: by the process and the time.
fn own_hub(url: &str) -> String {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let hub = format!("conformance-{}-{now}", std::process::id());
    if url.starts_with("nats") { format!("{url}/{hub}") } else { format!("{url}?hub={}", hub.replace('-', "_")) }
}
