//! A bounded pool of connections to one node, with a limit on waiting, and the connections it lends.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::prelude::{FromRow, Queryable as _};
use mysql_async::{Conn, Opts, OptsBuilder, Params};
use opentelemetry::Context;
use opentelemetry_sdk::trace::SdkTracer;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

use super::meters::PoolMeters;
use super::statement::{Statement, StatementSpan};
use super::{Failure, Node};
use narrows_serving::Telemetry;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long one statement may take, waits for locks included.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the database lets a statement wait for a lock before it returns 1205.
const LOCK_TIMEOUT: &str = "SET SESSION innodb_lock_wait_timeout = 5";
/// Statements that a connection keeps prepared: all that the program has.
const PREPARED_MAX: usize = 16;

/// How connections are made and lent.
#[derive(Debug, Clone)]
pub(crate) struct PoolConfig {
    /// Connections at a time, at least 1.
    pub(crate) connections_max: usize,
    /// The longest wait for one of them.
    pub(crate) wait_max: Duration,
    /// Time that passes before each statement: a network that is not there.
    pub(crate) network_delay: Duration,
}

/// Connections to a node.
pub(crate) struct Pool {
    node: Node,
    options: Opts,
    config: PoolConfig,
    places: Semaphore,
    idle: Mutex<Vec<Conn>>,
    tracer: SdkTracer,
    meters: PoolMeters,
}

impl Pool {
    /// Connects to nothing yet.
    pub(crate) fn new(node: Node, config: PoolConfig, telemetry: &Telemetry) -> Self {
        // With both values given, the library requests neither from the server.
        let options = OptsBuilder::from_opts(node.options().clone())
            .prefer_socket(false)
            .init(vec![LOCK_TIMEOUT])
            .stmt_cache_size(PREPARED_MAX)
            .max_allowed_packet(Some(16 << 20))
            .wait_timeout(Some(28_800));
        Self {
            meters: PoolMeters::new(&telemetry.meter(), &node, config.connections_max),
            tracer: telemetry.tracer(),
            places: Semaphore::new(config.connections_max),
            idle: Mutex::default(),
            options: options.into(),
            node,
            config,
        }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// A connection, an idle one if there is one.
    ///
    /// # Errors
    ///
    /// [`Failure::PoolTimeout`] when none gets free in time, [`Failure::Unavailable`] when none can be made.
    pub(crate) async fn take(&self) -> Result<Lease<'_>, Failure> {
        let began = Instant::now();
        let place = self.place().await?;
        let wait = began.elapsed();
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => {
                self.meters.idle(-1);
                connection
            }
            None => self.connect().await?,
        };
        self.meters.lent(wait);
        Ok(Lease { pool: self, connection: Some(connection), is_clean: true, taken: Instant::now(), _place: place })
    }

    async fn place(&self) -> Result<SemaphorePermit<'_>, Failure> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let _waiting = self.meters.waiting();
        match timeout(self.config.wait_max, self.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            _ => {
                self.meters.timed_out();
                Err(Failure::PoolTimeout)
            }
        }
    }

    async fn connect(&self) -> Result<Conn, Failure> {
        let begun = Instant::now();
        let made = timeout(CONNECT_TIMEOUT, Conn::new(self.options.clone())).await;
        let unavailable = |message: String| Failure::Unavailable { code: None, message };
        let late = || unavailable(format!("no connection to {} in time", self.node.address()));
        let connection = made.map_err(|_| late())?.map_err(|error| match Failure::of_statement(error) {
            Failure::Unavailable { code, message } => {
                Failure::Unavailable { code, message: format!("no connection to {}: {message}", self.node.address()) }
            }
            other => other,
        })?;
        self.meters.created(begun.elapsed());
        Ok(connection)
    }

    fn give_back(&self, connection: Conn) {
        self.meters.idle(1);
        self.idle().push(connection);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Conn>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node that broke one connection has broken them all.
    fn forget_idle(&self) {
        let forgotten = std::mem::take(&mut *self.idle());
        self.meters.idle(-i64::try_from(forgotten.len()).unwrap_or(i64::MAX));
    }
}

/// A connection that goes back to its pool when it is dropped, unless it is in the middle of something.
pub(crate) struct Lease<'a> {
    pool: &'a Pool,
    connection: Option<Conn>,
    /// Whether no statement is under way and no transaction is open.
    is_clean: bool,
    taken: Instant,
    _place: SemaphorePermit<'a>,
}

impl Lease<'_> {
    /// The rows of a query.
    pub(crate) async fn rows<R>(
        &mut self,
        cx: &Context,
        statement: Statement,
        values: impl Into<Params> + Send,
    ) -> Result<Vec<R>, Failure>
    where
        R: FromRow + Send + 'static,
    {
        let begun = self.start(cx, statement).await;
        let ended = match &mut self.connection {
            Some(connection) => bounded(statement, connection.exec(statement.text, values)).await,
            None => Err(closed()),
        };
        self.finish(begun, ended.as_ref().map(|rows: &Vec<R>| Some(rows.len())));
        ended
    }

    /// Changes rows.
    pub(crate) async fn change(
        &mut self,
        cx: &Context,
        statement: Statement,
        values: impl Into<Params> + Send,
    ) -> Result<(), Failure> {
        let begun = self.start(cx, statement).await;
        let ended = match &mut self.connection {
            Some(connection) => bounded(statement, connection.exec_drop(statement.text, values)).await,
            None => Err(closed()),
        };
        self.finish(begun, ended.as_ref().map(|()| None));
        ended
    }

    /// Begins a transaction; until it has ended, the connection is not given back.
    pub(crate) async fn begin(&mut self, cx: &Context) -> Result<(), Failure> {
        self.bound(cx, Statement::BEGIN).await?;
        self.is_clean = false;
        Ok(())
    }

    /// Ends the transaction for good.
    pub(crate) async fn commit(&mut self, cx: &Context) -> Result<(), Failure> {
        self.bound(cx, Statement::COMMIT).await?;
        self.is_clean = true;
        Ok(())
    }

    /// Undoes the transaction, which the database may have done already.
    pub(crate) async fn roll_back(&mut self, cx: &Context) -> Result<(), Failure> {
        self.bound(cx, Statement::ROLLBACK).await?;
        self.is_clean = true;
        Ok(())
    }

    async fn bound(&mut self, cx: &Context, statement: Statement) -> Result<(), Failure> {
        let begun = self.start(cx, statement).await;
        let ended = match &mut self.connection {
            Some(connection) => bounded(statement, connection.query_drop(statement.text)).await,
            None => Err(closed()),
        };
        self.finish(begun, ended.as_ref().map(|()| None));
        ended
    }

    /// Begins the span and lets the network's time pass. While the statement runs the connection is not clean.
    async fn start(&mut self, cx: &Context, statement: Statement) -> StatementRun {
        let was_clean = std::mem::replace(&mut self.is_clean, false);
        let span = StatementSpan::begin(&self.pool.tracer, cx, &self.pool.node, &statement);
        let begun = StatementRun { statement, span, at: Instant::now(), was_clean };
        if !self.pool.config.network_delay.is_zero() {
            sleep(self.pool.config.network_delay).await;
        }
        begun
    }

    /// Ends the span. A connection that the failure leaves in doubt is closed, and so are its siblings.
    fn finish(&mut self, begun: StatementRun, ended: Result<Option<usize>, &Failure>) {
        self.pool.meters.statement(&begun.statement, ended.err(), begun.at.elapsed());
        begun.span.end(ended);
        match ended {
            Err(failure) if !failure.spares_the_connection() => {
                self.connection = None;
                self.pool.forget_idle();
            }
            _ => self.is_clean = begun.was_clean,
        }
    }
}

/// A statement under way.
struct StatementRun {
    statement: Statement,
    span: StatementSpan,
    at: Instant,
    was_clean: bool,
}

async fn bounded<R>(statement: Statement, run: impl Future<Output = mysql_async::Result<R>>) -> Result<R, Failure> {
    match timeout(STATEMENT_TIMEOUT, run).await {
        Ok(ended) => ended.map_err(|error| statement.failure(error)),
        Err(_) => Err(Failure::Timeout),
    }
}

fn closed() -> Failure {
    Failure::Unavailable { code: None, message: "the connection is closed".to_owned() }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.pool.meters.returned(self.taken.elapsed());
        if let (true, Some(connection)) = (self.is_clean, self.connection.take()) {
            self.pool.give_back(connection);
        }
    }
}
