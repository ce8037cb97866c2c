//! Metrics of a pool and of its statements, by OpenTelemetry's conventions for database clients.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};

use super::statement::SYSTEM;
use super::{Failure, Node, Statement};

/// Bounds of the histograms, seconds: the conventions' for database operations, and finer ones below.
const SECONDS: [f64; 12] = [0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0];

/// The instruments of one pool, each with the attributes that it always has.
pub(super) struct PoolMeters {
    connections: UpDownCounter<i64>,
    pending: UpDownCounter<i64>,
    timeouts: Counter<u64>,
    wait_time: Histogram<f64>,
    use_time: Histogram<f64>,
    create_time: Histogram<f64>,
    operations: Histogram<f64>,
    pool: [KeyValue; 1],
    used: [KeyValue; 2],
    idle: [KeyValue; 2],
    server: [KeyValue; 4],
}

impl PoolMeters {
    pub(super) fn new(meter: &Meter, node: &Node, connections_max: usize) -> Self {
        let seconds =
            |name: &'static str| meter.f64_histogram(name).with_unit("s").with_boundaries(SECONDS.to_vec()).build();
        let counted = |name: &'static str, unit: &'static str| meter.i64_up_down_counter(name).with_unit(unit).build();
        let pool = KeyValue::new("db.client.connection.pool.name", format!("{}/{}", node.address(), node.namespace()));
        let state = |state: &'static str| [pool.clone(), KeyValue::new("db.client.connection.state", state)];
        let max = i64::try_from(connections_max).unwrap_or(i64::MAX);
        counted("db.client.connection.max", "{connection}").add(max, std::slice::from_ref(&pool));
        Self {
            connections: counted("db.client.connection.count", "{connection}"),
            pending: counted("db.client.connection.pending_requests", "{request}"),
            timeouts: meter.u64_counter("db.client.connection.timeouts").with_unit("{timeout}").build(),
            wait_time: seconds("db.client.connection.wait_time"),
            use_time: seconds("db.client.connection.use_time"),
            create_time: seconds("db.client.connection.create_time"),
            operations: seconds("db.client.operation.duration"),
            used: state("used"),
            idle: state("idle"),
            pool: [pool],
            server: [
                KeyValue::new("db.system.name", SYSTEM),
                KeyValue::new("db.namespace", node.namespace().to_owned()),
                KeyValue::new("server.address", node.host().to_owned()),
                KeyValue::new("server.port", i64::from(node.port())),
            ],
        }
    }

    /// Counts a waiting request for as long as the returned guard lives.
    pub(super) fn waiting(&self) -> WaitCount<'_> {
        self.pending.add(1, &self.pool);
        WaitCount(self)
    }

    /// A request timed out waiting.
    pub(super) fn timed_out(&self) {
        self.timeouts.add(1, &self.pool);
    }

    /// A connection was made.
    pub(super) fn created(&self, took: Duration) {
        self.create_time.record(took.as_secs_f64(), &self.pool);
    }

    /// A connection was lent after a wait.
    pub(super) fn lent(&self, waited: Duration) {
        self.connections.add(1, &self.used);
        self.wait_time.record(waited.as_secs_f64(), &self.pool);
    }

    /// A connection is lent no longer.
    pub(super) fn returned(&self, held: Duration) {
        self.connections.add(-1, &self.used);
        self.use_time.record(held.as_secs_f64(), &self.pool);
    }

    /// So many connections more, or less, lie idle.
    pub(super) fn idle(&self, more: i64) {
        self.connections.add(more, &self.idle);
    }

    /// A statement has ended.
    pub(super) fn statement(&self, statement: &Statement, failure: Option<&Failure>, took: Duration) {
        let mut attributes = self.server.to_vec();
        attributes.push(KeyValue::new("db.operation.name", statement.operation));
        attributes.extend(statement.collection.map(|collection| KeyValue::new("db.collection.name", collection)));
        attributes.extend(failure.map(|failure| KeyValue::new("error.type", failure.error_type())));
        self.operations.record(took.as_secs_f64(), &attributes);
    }
}

/// See [`PoolMeters::waiting`].
pub(super) struct WaitCount<'a>(&'a PoolMeters);

impl Drop for WaitCount<'_> {
    fn drop(&mut self) {
        self.0.pending.add(-1, &self.0.pool);
    }
}
