//! The places that connections share, and which connection gives up its place.
//!
//! Tasks are spawned, woken and aborted without the lock: a runtime that shuts down drops a task right there, and dropping
//! it takes the lock.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::Limits;
use crate::connection::{Clock, Connection, WaitState};

/// A connection that was accepted this many ticks ago or less may still be sending its first request.
const GRACE_TICKS: u32 = 1;

/// The places of one server. Several listeners may share them.
#[derive(Debug, Clone)]
pub struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    began: Instant,
    clock: Arc<Clock>,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// By the order of acceptance.
    entries: BTreeMap<u64, Entry>,
    accepted: u64,
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    connection: Arc<Connection>,
    /// `None` while it is being spawned.
    task: Option<AbortHandle>,
}

/// Outcome of the search for a place.
#[derive(Debug)]
enum PlaceSearch {
    Place { number: u64, evicted: Option<AbortHandle> },
    AllBusy,
    PeerBusy,
}

/// Outcome of a newcomer.
#[derive(Debug)]
pub(crate) enum Admission<T> {
    Admitted,
    /// All places are taken by connections that are busy.
    Later(T),
    /// Its address has as many busy connections as one may have.
    Refused,
}

impl Places {
    /// Free places within `limits`.
    ///
    /// # Panics
    ///
    /// If `limits` allow no connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        assert!(limits.connections_max > 0 && limits.peer_connections_max > 0, "no connection is allowed: {limits:?}");
        let (clock, open) = (Arc::default(), Mutex::default());
        Self(Arc::new(Shared { limits, began: Instant::now(), clock, open }))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Gives `newcomer` a place, another's if need be. `spawn` makes its task, which owns the [`Place`].
    pub(crate) fn admit<T>(
        &self,
        peer: IpAddr,
        newcomer: T,
        spawn: impl FnOnce(T, Arc<Connection>, Place) -> AbortHandle,
    ) -> Admission<T> {
        let now = self.tick();
        let connection = Arc::new(Connection::new(Arc::clone(&self.0.clock)));
        let taken = self.open().take(peer.to_canonical(), &connection, &self.0.limits, now);
        match taken {
            PlaceSearch::Place { number, evicted } => {
                evicted.iter().for_each(AbortHandle::abort);
                let task = spawn(newcomer, connection, Place { places: self.clone(), number });
                self.attach(number, task);
                Admission::Admitted
            }
            PlaceSearch::AllBusy => Admission::Later(newcomer),
            PlaceSearch::PeerBusy => Admission::Refused,
        }
    }

    /// The place may have been given to another before its task was there.
    fn attach(&self, number: u64, task: AbortHandle) {
        match self.open().entries.get_mut(&number) {
            Some(entry) => entry.task = Some(task),
            None => task.abort(),
        }
    }

    /// Closes the connection that has waited longest, if one waits.
    pub(crate) fn evict(&self) {
        let now = self.tick();
        let evicted = {
            let mut open = self.open();
            longest_waiting(open.all(), now).and_then(|longest| open.remove(longest))
        };
        evicted.iter().for_each(AbortHandle::abort);
    }

    /// Closes connections that have waited for longer than the limits allow.
    pub(crate) fn close_overdue(&self) {
        let now = self.tick();
        let Limits { first_request_timeout, idle_timeout, .. } = self.0.limits;
        let is_longer = |since, timeout| now.saturating_sub(since) > self.ticks(timeout);
        self.close(|waiting| match waiting {
            WaitState::ForFirstRequest { since } => is_longer(since, first_request_timeout),
            WaitState::ForNextRequest { since } => idle_timeout.is_some_and(|timeout| is_longer(since, timeout)),
        });
    }

    /// Ends all connections: those that never had a request at once, the others after the requests in progress.
    pub(crate) fn end(&self) {
        self.0.clock.end();
        self.close(|waiting| matches!(waiting, WaitState::ForFirstRequest { .. }));
        let left: Vec<Arc<Connection>> =
            self.open().entries.values().map(|entry| Arc::clone(&entry.connection)).collect();
        left.iter().for_each(|connection| connection.wake());
    }

    fn close(&self, is_closed: impl Fn(WaitState) -> bool) {
        let closed: Vec<AbortHandle> = {
            let mut open = self.open();
            let waiting = open.all().filter(|(_, waiting)| waiting.is_some_and(&is_closed));
            let numbers: Vec<u64> = waiting.map(|(number, _)| number).collect();
            numbers.into_iter().filter_map(|number| open.remove(number)).collect()
        };
        closed.iter().for_each(AbortHandle::abort);
    }

    /// The tick that it is now.
    fn tick(&self) -> u32 {
        let now = self.ticks(self.0.began.elapsed());
        self.0.clock.set(now);
        now
    }

    fn ticks(&self, time: Duration) -> u32 {
        u32::try_from(time.as_nanos() / self.0.limits.tick().as_nanos()).unwrap_or(u32::MAX)
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        // Nothing in here panics halfway through a change.
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn all(&self) -> impl Iterator<Item = (u64, Option<WaitState>)> {
        self.entries.iter().map(|(number, entry)| (*number, entry.connection.waiting()))
    }

    fn of_peer(&self, peer: IpAddr) -> impl Iterator<Item = (u64, Option<WaitState>)> {
        let of_peer = self.entries.iter().filter(move |(_, entry)| entry.peer == peer);
        of_peer.map(|(number, entry)| (*number, entry.connection.waiting()))
    }

    /// A place for `connection`, by the rules of the crate.
    fn take(&mut self, peer: IpAddr, connection: &Arc<Connection>, limits: &Limits, now: u32) -> PlaceSearch {
        let mut evicted = None;
        if !peer.is_loopback() && self.of_peer(peer).count() >= limits.peer_connections_max {
            let Some(longest) = longest_waiting(self.of_peer(peer), now) else { return PlaceSearch::PeerBusy };
            evicted = self.remove(longest);
        } else if self.entries.len() >= limits.connections_max {
            let Some(longest) = longest_waiting(self.all(), now) else { return PlaceSearch::AllBusy };
            evicted = self.remove(longest);
        }
        let number = self.accepted;
        self.accepted += 1;
        self.entries.insert(number, Entry { peer, connection: Arc::clone(connection), task: None });
        debug_assert!(self.entries.len() <= limits.connections_max, "more connections than places");
        PlaceSearch::Place { number, evicted }
    }

    /// Its place is free from now on; the task has to be aborted, without the lock.
    fn remove(&mut self, number: u64) -> Option<AbortHandle> {
        self.entries.remove(&number)?.task
    }
}

/// The connection to close first: the longest without any request, then the longest between two requests, then one that
/// has only just been accepted. `None` if all are busy.
fn longest_waiting(open: impl Iterator<Item = (u64, Option<WaitState>)>, now: u32) -> Option<u64> {
    let rank = |waiting| match waiting {
        WaitState::ForFirstRequest { since } if now.saturating_sub(since) > GRACE_TICKS => (0, since),
        WaitState::ForNextRequest { since } => (1, since),
        WaitState::ForFirstRequest { since } => (2, since),
    };
    open.filter_map(|(number, waiting)| Some((rank(waiting?), number))).min().map(|(_, number)| number)
}

/// A place that is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.open().entries.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_without_a_request_goes_first_and_a_busy_one_never() {
        let first = |since| Some(WaitState::ForFirstRequest { since });
        let next = |since| Some(WaitState::ForNextRequest { since });
        let cases: [(&[Option<WaitState>], Option<u64>); 7] = [
            (&[], None),
            (&[None, None], None),
            (&[None, first(10)], Some(1)),
            (&[next(1), first(5), first(4)], Some(2)),
            (&[first(4), first(4)], Some(0)),
            // Accepted just now, their requests may be under way: who idles between requests goes before them.
            (&[first(9), next(8), next(7), first(10)], Some(2)),
            (&[first(10), first(9), None], Some(1)),
        ];
        for (open, expected) in cases {
            assert_eq!(longest_waiting((0..).zip(open.iter().copied()), 10), expected, "{open:?}");
        }
    }

    const LIMITS: Limits = Limits {
        connections_max: 4,
        peer_connections_max: 2,
        first_request_timeout: Duration::from_secs(10),
        idle_timeout: Some(Duration::from_secs(150)),
        drain: Duration::from_secs(1),
    };

    /// Admits a connection that does nothing.
    fn admit(places: &Places, peer: &str) -> (Admission<()>, Option<Arc<Connection>>) {
        let mut made = None;
        let admission = places.admit(peer.parse().unwrap(), (), |(), connection, place| {
            made = Some(connection);
            let idle = async move {
                let _place = place;
                std::future::pending::<()>().await;
            };
            tokio::spawn(idle).abort_handle()
        });
        (admission, made)
    }

    fn peers(places: &Places) -> Vec<String> {
        places.open().entries.values().map(|entry| entry.peer.to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_beyond_loopback_has_places_of_its_own() {
        let places = Places::new(LIMITS);
        let busy = admit(&places, "10.0.0.1").1.unwrap().begin();
        admit(&places, "10.0.0.1");
        admit(&places, "10.0.0.2");
        assert!(matches!(admit(&places, "::ffff:10.0.0.1").0, Admission::Admitted), "replaces its own second");
        assert_eq!(peers(&places), ["10.0.0.1", "10.0.0.2", "10.0.0.1"]);
        let second = places.open().entries.values().last().unwrap().connection.begin();
        assert!(matches!(admit(&places, "10.0.0.1").0, Admission::Refused), "both of its own are busy");
        drop((busy, second));
        for _ in 0..9 {
            assert!(matches!(admit(&places, "127.0.0.1").0, Admission::Admitted));
            assert!(places.open().entries.len() <= LIMITS.connections_max);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_waits_when_all_are_busy() {
        let places = Places::new(LIMITS);
        let mut busy: Vec<_> = (0..4).map(|_| admit(&places, "127.0.0.1").1.unwrap().begin()).collect();
        assert!(matches!(admit(&places, "127.0.0.1").0, Admission::Later(())));
        busy.pop();
        assert!(matches!(admit(&places, "127.0.0.1").0, Admission::Admitted));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_has_an_end_and_work_has_none() {
        let places = Places::new(LIMITS);
        let [_silent, served, busy] = [(); 3].map(|()| admit(&places, "127.0.0.1").1.unwrap());
        drop(served.begin());
        let _busy = busy.begin();
        let left = |seconds| {
            let places = &places;
            async move {
                tokio::time::advance(Duration::from_secs(seconds)).await;
                places.close_overdue();
                peers(places).len()
            }
        };
        assert_eq!(left(10).await, 3);
        assert_eq!(left(2).await, 2, "the first request never came");
        assert_eq!(left(137).await, 2);
        assert_eq!(left(2).await, 1, "no further request came");
        assert_eq!(left(100_000).await, 1, "a request takes as long as it takes");
    }
}
