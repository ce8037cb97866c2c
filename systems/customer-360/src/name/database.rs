//! The pool: a number of connections, a bound on the queries under way on them, and a bound on the wait for a turn.
//!
//! A query takes a place, or waits for one for a while; then it goes to the connection with the fewest queries. With
//! as many places as connections this is a pool as most have it. More places let queries follow each other on a
//! connection without waiting for the response between them, which saves both sides work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::failure::QueryFailure;
use super::rows::Rows;
use super::running_query::RunningQuery;
use super::session::Session;
use super::slot::Slot;
use super::span::{DatabaseServer, QuerySpan};
use super::statement::Query;
use crate::Error;
use crate::response::Problem;
use crate::trace::Trace;

/// Most connections and most places of a pool.
const CONNECTIONS_MAX: usize = 256;
const PLACES_MAX: usize = 4_096;

/// Which database, and how many queries at a time.
#[derive(Debug, Clone)]
pub struct Config {
    /// `postgres://USER@HOST:PORT/DATABASE`.
    pub url: String,
    /// Connections that are kept, 1 to 256.
    pub connections: usize,
    /// Queries under way at a time on all connections together, 1 to 4,096.
    pub in_flight: usize,
    /// How long a query waits when that many are under way.
    pub wait: Duration,
    /// How long a query may take.
    pub timeout: Duration,
}

/// The pool.
#[derive(Debug)]
pub(super) struct Database {
    slots: Vec<Arc<Slot>>,
    places: Arc<Semaphore>,
    config: Config,
    server: DatabaseServer,
    waiting: AtomicUsize,
    timeouts: AtomicUsize,
    _keepers: JoinSet<()>,
}

impl Database {
    /// Begins to connect. Needs to be called within a tokio runtime.
    pub(super) fn open(config: &Config) -> Result<Arc<Self>, Error> {
        within("--connections", config.connections, CONNECTIONS_MAX, "1 to 256")?;
        within("--in-flight", config.in_flight, PLACES_MAX, "1 to 4096")?;
        let mut server: tokio_postgres::Config = config.url.parse().map_err(Error::Database)?;
        server.application_name("name");
        server.options(format!("-c statement_timeout={}", config.timeout.as_millis()));
        let slots: Vec<Arc<Slot>> = (0..config.connections).map(|_| Arc::default()).collect();
        let mut keepers = JoinSet::new();
        for slot in &slots {
            keepers.spawn(Arc::clone(slot).keep(server.clone()));
        }
        Ok(Arc::new(Self {
            slots,
            places: Arc::new(Semaphore::new(config.in_flight)),
            config: config.clone(),
            server: DatabaseServer::from_config(&server),
            waiting: AtomicUsize::new(0),
            timeouts: AtomicUsize::new(0),
            _keepers: keepers,
        }))
    }

    /// Whether there is a connection.
    pub(super) fn reachable(&self) -> Result<(), Problem> {
        Ok(self.choose().map(|_| ())?)
    }

    /// The rows that a query finds.
    pub(super) async fn query(&self, trace: &Trace, query: Query) -> Result<Rows, Problem> {
        let taken = self.take(trace).await;
        if let Err(full @ QueryFailure::PoolFull { .. }) = taken {
            return Err(full.into());
        }
        // A query that finds no connection is one as well, so that traces show whose failure it is.
        let span = QuerySpan::begin(trace, &self.server, &query);
        let result = match taken.and_then(|taken| Ok((taken, self.choose()?))) {
            Ok((taken, (slot, session))) => self.run(RunningQuery::begin(session, query, slot.begin(), taken)).await,
            Err(unreachable) => Err(unreachable),
        };
        span.finish(&result);
        Ok(result?)
    }

    async fn run(&self, running: RunningQuery) -> Result<Rows, QueryFailure> {
        let timeout = self.config.timeout;
        match tokio::time::timeout(timeout, running).await {
            Ok(Ok(rows)) => rows.map_err(QueryFailure::Unreadable),
            Ok(Err(error)) => Err(QueryFailure::from_postgres(&error, timeout.as_millis())),
            Err(_) => Err(QueryFailure::Timeout(timeout.as_millis())),
        }
    }

    /// A place, after a wait if need be. Nobody waits for a database that is not there.
    async fn take(&self, trace: &Trace) -> Result<OwnedSemaphorePermit, QueryFailure> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        self.choose()?;
        let _waiting = WaitCount::begin(&self.waiting);
        let span = super::span::WaitSpan::begin(trace);
        let place = tokio::time::timeout(self.config.wait, Arc::clone(&self.places).acquire_owned()).await;
        // Nobody closes the semaphore.
        let place = place.ok().and_then(Result::ok).ok_or_else(|| {
            self.timeouts.fetch_add(1, Ordering::Relaxed);
            QueryFailure::PoolFull { waited_ms: self.config.wait.as_millis(), places: self.config.in_flight }
        });
        span.finish(place.as_ref().err());
        place
    }

    /// The connection with the fewest queries under way.
    fn choose(&self) -> Result<(&Arc<Slot>, Arc<Session>), QueryFailure> {
        let mut best: Option<(usize, &Arc<Slot>, Arc<Session>)> = None;
        let mut reason = None;
        for slot in &self.slots {
            let queries = slot.queries();
            if best.as_ref().is_some_and(|(fewest, ..)| *fewest <= queries) {
                continue;
            }
            match slot.session() {
                Ok(session) => best = Some((queries, slot, session)),
                Err(why) => reason = Some(why),
            }
        }
        match best {
            Some((_, slot, session)) => Ok((slot, session)),
            None => Err(QueryFailure::Unreachable(reason.as_deref().unwrap_or_default().to_owned())),
        }
    }

    /// State of the pool.
    pub(super) fn state(&self) -> PoolState {
        let open = self.slots.iter().filter(|slot| slot.session().is_ok());
        let (used, idle): (Vec<_>, Vec<_>) = open.partition(|slot| slot.queries() > 0);
        PoolState {
            used: used.len(),
            idle: idle.len(),
            max: self.slots.len(),
            waiting: self.waiting.load(Ordering::Relaxed),
            timeouts: self.timeouts.load(Ordering::Relaxed),
        }
    }
}

/// A reading of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PoolState {
    /// Connections with at least one query under way.
    pub(super) used: usize,
    pub(super) idle: usize,
    pub(super) max: usize,
    /// Queries that wait for a place.
    pub(super) waiting: usize,
    /// Queries that timed out waiting, ever.
    pub(super) timeouts: usize,
}

struct WaitCount<'a>(&'a AtomicUsize);

impl<'a> WaitCount<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for WaitCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn within(name: &'static str, value: usize, most: usize, expected: &'static str) -> Result<(), Error> {
    if (1..=most).contains(&value) { Ok(()) } else { Err(Error::Setting { name, value: value.to_string(), expected }) }
}
