//! Requests of this node's clients: to partitions here, or over the bus to the node that has them.
//!
//! A request that got no response is sent again under the same number to the same run of a node, which does it once. Only
//! if that node is lost is it not known whether the request was done. It is then made again if that changes nothing more,
//! and refused as unknown otherwise. A node that leaves in order is not lost: see [`farewell`](super::farewell).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::directory::{Directory, Peer};
use super::exchange::Exchange;
use crate::client::{Carry, Repetition};
use crate::codec::{Outcome, Packet, RemoteRequest, Work};
use crate::error::Error;
use crate::hub::{Inbox, PendingResponse, Post};
use crate::ids::PartitionId;
use crate::partition::{Reply, RequestKind, Response};

/// After so long without a response a request is sent again.
const REPEAT: Duration = Duration::from_millis(250);
/// Each time, the pause before the next time doubles, up to this: what takes long is not helped by repetitions.
const REPEAT_MAX: Duration = Duration::from_secs(4);
/// How long a request waits for news of its partition before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A response that is waited for, and from which run of a node.
struct OpenCall {
    from: u64,
    /// Whether it may be given up without a response, because it is done again elsewhere.
    is_activity: bool,
    outcome: oneshot::Sender<Outcome>,
}

#[derive(Default)]
struct OpenCalls {
    next: u64,
    awaited: BTreeMap<u64, OpenCall>,
    /// Runs of nodes that have said farewell and are not forgotten yet.
    departed: BTreeSet<u64>,
}

/// Requests of clients of this node.
pub(super) struct Calls {
    run: u64,
    timeout: Duration,
    post: Arc<Post>,
    directory: Arc<Directory>,
    exchange: Arc<Exchange>,
    runtime: Handle,
    open: Mutex<OpenCalls>,
}

impl Calls {
    pub(super) fn new(
        run: u64,
        timeout: Duration,
        post: Arc<Post>,
        directory: Arc<Directory>,
        exchange: Arc<Exchange>,
        runtime: Handle,
    ) -> Self {
        Self { run, timeout, post, directory, exchange, runtime, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, OpenCalls> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has something run beside the calls.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Takes a response in, if it is waited for.
    pub(super) fn respond(&self, number: u64, outcome: Outcome) {
        if let Some(awaited) = self.open().awaited.remove(&number) {
            // The client may have gone away just now.
            let _ = awaited.outcome.send(outcome);
        }
    }

    /// A run of a node leaves: nothing new is sent to it. Says whether all that it was asked is responded to.
    pub(super) fn depart(&self, run: u64) -> bool {
        let mut open = self.open();
        open.departed.insert(run);
        !open.awaited.values().any(|awaited| awaited.from == run && !awaited.is_activity)
    }

    /// Forgets runs of nodes that are gone.
    pub(super) fn prune(&self, is_alive: impl Fn(u64) -> bool) {
        self.open().departed.retain(|run| is_alive(*run));
    }

    async fn request(&self, partition: PartitionId, kind: RequestKind, again: Repetition) -> Result<Response, Error> {
        let begun = Instant::now();
        let mut changes = self.directory.watch();
        let mut may_be_done = false;
        loop {
            changes.mark_unchanged();
            let outcome = match (self.post.inbox(partition), self.directory.home(partition)) {
                (Some(inbox), _) => self.here(partition, &inbox, kind.clone()).await,
                (None, Some(peer)) if peer.run != self.run => {
                    self.there(&peer, Work::Request(partition, kind.clone())).await
                }
                _ => Outcome::NotDone,
            };
            match outcome {
                Outcome::Done(result) if may_be_done && again == Repetition::UntilItExists => {
                    return done_before(result);
                }
                Outcome::Done(result) => return result,
                Outcome::Lost if again == Repetition::No => return Err(self.unknown(partition)),
                Outcome::Lost => may_be_done = true,
                Outcome::NotDone => {}
            }
            // A wait has its own timeout.
            if begun.elapsed() >= self.timeout && !matches!(kind, RequestKind::Wait(_)) {
                let waited_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                let is_unknown = may_be_done && again != Repetition::Yes;
                return Err(if is_unknown {
                    self.unknown(partition)
                } else {
                    Error::Unavailable { partition, waited_ms, reason: self.directory.trouble(partition) }
                });
            }
            // Either way it is tried again.
            let _ = tokio::time::timeout(LOOK_AGAIN, changes.changed()).await;
        }
    }

    async fn here(&self, partition: PartitionId, inbox: &Arc<Inbox>, kind: RequestKind) -> Outcome {
        let Ok(response) = PendingResponse::put(inbox, kind) else { return Outcome::NotDone };
        let response = response.await;
        if let Ok(Err(Error::Stopped { source, .. })) = &response {
            self.directory.note(Some(partition), Some(source));
        }
        outcome_of(Some(partition), response)
    }

    fn unknown(&self, partition: PartitionId) -> Error {
        Error::Unknown { partition, reason: self.directory.trouble(partition) }
    }

    /// Has another node do something.
    pub(super) async fn there(&self, peer: &Peer, work: Work) -> Outcome {
        let (outcome, mut response) = oneshot::channel();
        let is_activity = matches!(work, Work::Activity(_));
        let awaited = OpenCall { from: peer.run, is_activity, outcome };
        let Some(call) = Call::begin(self, peer, awaited) else { return Outcome::NotDone };
        let (number, address) = (call.number, self.exchange.address());
        let mut repeat = REPEAT;
        loop {
            let settled = self.open().awaited.keys().next().copied().unwrap_or(number);
            let (address, work) = (address.clone(), work.clone());
            let request = RemoteRequest { from: self.run, address, to: peer.run, number, settled, work };
            self.exchange.send(&peer.address, &Packet::Request(request));
            match tokio::time::timeout(repeat, &mut response).await {
                Ok(outcome) => return outcome.unwrap_or(Outcome::Lost),
                Err(_) if !self.directory.is_alive(peer.run) => return Outcome::Lost,
                Err(_) => repeat = REPEAT_MAX.min(repeat * 2),
            }
        }
    }
}

/// A request that another node is doing. Dropping it before there is a response tells that node.
struct Call<'a> {
    calls: &'a Calls,
    peer: &'a Peer,
    number: u64,
}

impl<'a> Call<'a> {
    /// `None` if that run of the node is leaving.
    fn begin(calls: &'a Calls, peer: &'a Peer, awaited: OpenCall) -> Option<Self> {
        let mut open = calls.open();
        if open.departed.contains(&peer.run) {
            return None;
        }
        open.next += 1;
        let number = open.next;
        open.awaited.insert(number, awaited);
        Some(Self { calls, peer, number })
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let removed = self.calls.open().awaited.remove(&self.number);
        if removed.is_some_and(|awaited| self.calls.directory.is_alive(awaited.from)) {
            let cancel = Packet::Cancel { from: self.calls.run, number: self.number };
            self.calls.exchange.send(&self.peer.address, &cancel);
        }
    }
}

/// Fate of a request that a partition of this process has in its inbox, or of an activity that is to run here.
pub(super) fn outcome_of(
    partition: Option<PartitionId>,
    response: Result<Result<Response, Error>, oneshot::error::RecvError>,
) -> Outcome {
    match response {
        Ok(Err(Error::Moved { partition: of })) if Some(of) == partition => Outcome::NotDone,
        // It was taken up, and the partition ended before it was durable.
        Ok(Err(Error::Closed | Error::Stopped { .. })) | Err(_) => Outcome::Lost,
        Ok(response) => Outcome::Done(response),
    }
}

/// The response to a start that may have been made before: if the instance exists, it was.
fn done_before(result: Result<Response, Error>) -> Result<Response, Error> {
    match result {
        Err(Error::Exists { .. }) => Ok(Response::Done),
        Ok(Response::Each(each)) => {
            let done = |result| if matches!(result, Err(Error::Exists { .. })) { Ok(()) } else { result };
            Ok(Response::Each(each.into_iter().map(done).collect()))
        }
        other => other,
    }
}

/// Carries requests out as tasks, which end when their clients go away.
pub(super) struct Carrier(pub(super) Arc<Calls>);

impl Carry for Carrier {
    fn carry(&self, partition: PartitionId, kind: RequestKind, again: Repetition, mut reply: Reply) {
        let calls = Arc::clone(&self.0);
        self.0.runtime.spawn(async move {
            tokio::select! {
                biased;
                result = calls.request(partition, kind, again) => drop(reply.send(result)),
                () = reply.closed() => {}
            }
        });
    }
}
