//! Requests that come from clients of other nodes.
//!
//! Each is done once, however often it comes: a request is remembered, with its response, until the node that it comes
//! from says that it is settled, or is lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::calls::outcome_of;
use super::exchange::Exchange;
use crate::codec::{Outcome, Packet, RemoteRequest, Work};
use crate::hub::{Engine, Fence, PendingResponse};

/// Requests of one node that are remembered; more are passed over until it settles some.
const REQUESTS_MAX: usize = 1 << 20;

/// A request that has come.
enum Entry {
    UnderWay(Option<AbortHandle>),
    Done(Arc<Packet>),
}

/// Runs of nodes that are remembered; beyond it, those that are not alive are forgotten.
const REQUESTERS_MAX: usize = 4096;

/// Requests of one run of a node.
struct Requester {
    /// When it was last known to be alive. One that requests something is, even if it has only just come.
    alive_at: Instant,
    /// Requests of lower numbers are settled.
    settled: u64,
    /// Fate of requests of lower numbers that are not among these was forgotten while the node was silent.
    forgotten: u64,
    requests: BTreeMap<u64, Entry>,
}

/// Requests of other nodes.
pub(super) struct PeerRequests {
    run: u64,
    engine: Arc<Engine>,
    fence: Arc<Fence>,
    exchange: Arc<Exchange>,
    runtime: Handle,
    requesters: Mutex<HashMap<u64, Requester>>,
}

impl PeerRequests {
    pub(super) fn new(
        run: u64,
        engine: Arc<Engine>,
        fence: Arc<Fence>,
        exchange: Arc<Exchange>,
        runtime: Handle,
    ) -> Self {
        Self { run, engine, fence, exchange, runtime, requesters: Mutex::default() }
    }

    fn requesters(&self) -> MutexGuard<'_, HashMap<u64, Requester>> {
        self.requesters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request in, unless it has come before. It does not wait.
    pub(super) fn take(self: &Arc<Self>, request: RemoteRequest) {
        if request.to != self.run {
            // An earlier run of this node may have done it.
            let outcome = Outcome::Lost;
            let packet = Packet::Response { to: request.from, number: request.number, outcome };
            return self.exchange.send(&request.address, &packet);
        }
        let mut requesters = self.requesters();
        let requester = requesters.entry(request.from).or_insert_with(Requester::new);
        requester.alive_at = Instant::now();
        if request.settled > requester.settled {
            requester.settled = request.settled;
            requester.requests = requester.requests.split_off(&request.settled);
        }
        if request.number < requester.settled {
            return;
        }
        match requester.requests.get(&request.number) {
            Some(Entry::Done(packet)) => {
                let packet = Arc::clone(packet);
                drop(requesters);
                self.exchange.send(&request.address, &packet);
            }
            Some(Entry::UnderWay(_)) => {}
            None if request.number < requester.forgotten => {
                drop(requesters);
                let packet = Packet::Response { to: request.from, number: request.number, outcome: Outcome::Lost };
                self.exchange.send(&request.address, &packet);
            }
            None if requester.requests.len() >= REQUESTS_MAX => {}
            None => {
                requester.requests.insert(request.number, Entry::UnderWay(None));
                drop(requesters);
                self.begin(request);
            }
        }
    }

    fn begin(self: &Arc<Self>, request: RemoteRequest) {
        let RemoteRequest { from, address, number, work, .. } = request;
        let partition = match &work {
            Work::Request(partition, _) => Some(*partition),
            Work::Activity(_) => None,
        };
        let Some(response) = self.hand_over(work) else {
            return self.end(from, &address, number, Outcome::NotDone);
        };
        let this = Arc::clone(self);
        let task = self.runtime.spawn(async move {
            let outcome = outcome_of(partition, response.await);
            // A node that has lost its lease says nothing more: its knowledge may be old.
            let outcome = if this.fence.holds() { outcome } else { Outcome::Lost };
            this.end(from, &address, number, outcome);
        });
        let mut requesters = self.requesters();
        let entry = requesters.get_mut(&from).and_then(|requester| requester.requests.get_mut(&number));
        if let Some(Entry::UnderWay(abort)) = entry {
            *abort = Some(task.abort_handle());
        }
    }

    /// Gives work to who does it here; `None` if it is not to be done here.
    fn hand_over(&self, work: Work) -> Option<PendingResponse> {
        match work {
            Work::Request(partition, kind) => PendingResponse::put(&self.engine.post().inbox(partition)?, kind).ok(),
            Work::Activity(call) => {
                let (reply, response) = oneshot::channel();
                self.engine.run_activity(call, reply);
                Some(PendingResponse::of(response))
            }
        }
    }

    fn end(&self, from: u64, address: &str, number: u64, outcome: Outcome) {
        let packet = Arc::new(Packet::Response { to: from, number, outcome });
        let mut requesters = self.requesters();
        let entry = requesters.get_mut(&from).and_then(|requester| requester.requests.get_mut(&number));
        if let Some(entry) = entry {
            *entry = Entry::Done(Arc::clone(&packet));
        }
        drop(requesters);
        self.exchange.send(address, &packet);
    }

    /// The client of a request has gone away.
    pub(super) fn cancel(&self, from: u64, number: u64) {
        let mut requesters = self.requesters();
        let entry = requesters.get_mut(&from).and_then(|requester| requester.requests.get_mut(&number));
        if let Some(Entry::UnderWay(Some(abort))) = entry {
            // It stays known, so that a copy that is late does not begin it anew.
            abort.abort();
        }
    }

    /// Gives up what nodes have requested that have not been alive for `silence`, and forgets what became of it.
    pub(super) fn prune(&self, silence: Duration, is_alive: impl Fn(u64) -> bool) {
        let mut requesters = self.requesters();
        let is_crowded = requesters.len() > REQUESTERS_MAX;
        requesters.retain(|from, requester| {
            if is_alive(*from) {
                requester.alive_at = Instant::now();
            }
            let stays = requester.alive_at.elapsed() < silence;
            if !stays {
                requester.forget();
            }
            stays || !is_crowded
        });
    }
}

impl Requester {
    fn new() -> Self {
        Self { alive_at: Instant::now(), settled: 0, forgotten: 0, requests: BTreeMap::new() }
    }

    fn forget(&mut self) {
        let requests = std::mem::take(&mut self.requests);
        self.forgotten = requests.keys().next_back().map_or(self.forgotten, |last| self.forgotten.max(last + 1));
        for entry in requests.into_values() {
            if let Entry::UnderWay(Some(abort)) = entry {
                abort.abort();
            }
        }
    }
}
