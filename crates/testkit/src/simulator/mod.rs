//! A shop that does not exist, under load: evidence whose cause is known because it was put in.
//!
//! A discrete-event model: users in a closed loop, services with processors, a database behind a pool of connections,
//! peers that are called, and a store that refuses what exceeds its budget. Queues, retries and CPU follow from it; traces,
//! counts and series are what instrumentation would have written. The same seed gives the same evidence. It has no
//! network, no garbage collector and no scheduler: its results hold for queues, not for machines.

mod engine;
mod record;

use narrows_model::evidence::TrialEvidence;

use crate::random::Random;
use crate::spans::{client, document_query, query, server};
use engine::{Engine, Op, Spend};

/// The service that users call.
pub const WEB: &str = "web";
/// The database's processes.
pub const DATABASE: &str = "database";
/// The peer that is called over HTTP.
pub const PEER: &str = "peer";
/// The store with provisioned throughput.
pub const STORE: &str = "store";
/// The operation that users call.
pub const OPERATION: &str = "GET /orders";

/// The shop and its load. The default is healthy.
#[derive(Debug, Clone)]
pub struct System {
    /// Of all chance in it.
    pub seed: u64,
    /// Users and seconds of each step; the first three seconds are warm-up.
    pub steps: Vec<(u32, u32)>,
    /// Mean time between a response and the next request, milliseconds; exponential.
    pub think_ms: f64,
    /// Processors of the web service.
    pub web_cores: u32,
    /// CPU of a request in the web service, mean, milliseconds.
    pub web_ms: f64,
    /// Processors of the database.
    pub database_cores: u32,
    /// CPU of a query, mean, milliseconds.
    pub query_ms: f64,
    /// Queries that differ from each other.
    pub queries: u32,
    /// Rows of the first query that are each followed by their own query; 0 when all come at once.
    pub rows_one_by_one: u32,
    /// Connections to the database.
    pub pool: u32,
    /// Time that a connection is kept after its last query, milliseconds.
    pub pool_held_ms: f64,
    /// True if the pool reports how it is used.
    pub has_pool_metrics: bool,
    /// Calls to the peer, one for each region.
    pub peer_calls: u32,
    /// True if they wait for each other.
    pub is_serial: bool,
    /// Mean time that the peer takes, milliseconds, in addition to CPU time of a tenth of it.
    pub peer_ms: f64,
    /// Number of partitions of the store; 0 without a store.
    pub partitions: u32,
    /// Limit of each partition, request units per second.
    pub provisioned: f64,
    /// Charge for a call to the store, request units.
    pub charge: f64,
    /// The share of calls that go to the first partition; even when 0.
    pub hot_share: f64,
}

impl Default for System {
    fn default() -> Self {
        Self {
            seed: 1,
            steps: vec![(4, 20)],
            think_ms: 0.0,
            web_cores: 2,
            web_ms: 3.0,
            database_cores: 2,
            query_ms: 1.5,
            queries: 2,
            rows_one_by_one: 0,
            pool: 40,
            pool_held_ms: 0.0,
            has_pool_metrics: true,
            peer_calls: 1,
            is_serial: true,
            peer_ms: 8.0,
            partitions: 0,
            provisioned: 0.0,
            charge: 0.0,
            hot_share: 0.0,
        }
    }
}

/// Indices of the stations and pools that programs use.
const WEB_AT: usize = 0;
const DATABASE_AT: usize = 1;
const PEER_AT: usize = 2;
const PEER_CORES: u32 = 8;
const PEER_PORT: u16 = crate::trial::FIRST_PORT + PEER_AT as u16;
const DATABASE_PORT: u16 = crate::trial::FIRST_PORT + DATABASE_AT as u16;
/// From the store and back.
const STORE_MS: f64 = 3.0;
/// Beyond the busy time of a query.
const NETWORK_MS: f64 = 0.2;

impl System {
    /// Runs the load to its end and records it.
    pub fn run(&self, variant: &str) -> TrialEvidence {
        let stations = [(WEB, self.web_cores), (DATABASE, self.database_cores), (PEER, PEER_CORES)];
        let mut engine = Engine::new(&stations, self.pool, (self.partitions, self.provisioned), Random::new(self.seed));
        let history = engine.run(&self.steps, self.think_ms, |random| self.request(random));
        record::evidence(variant, &stations, self, history)
    }

    fn request(&self, random: &mut Random) -> Vec<Op> {
        let mut ops = vec![Op::open(server(WEB, OPERATION)), Op::work(WEB_AT, self.web_ms / 2.0)];
        self.query_database(random, &mut ops);
        self.call_peers(random, &mut ops);
        self.query_store(random, &mut ops);
        ops.extend([Op::work(WEB_AT, self.web_ms / 2.0), Op::Close]);
        ops
    }

    fn query_database(&self, random: &mut Random, ops: &mut Vec<Op>) {
        if self.queries == 0 {
            return;
        }
        ops.push(Op::Acquire);
        let mut query = |text: &str, rows: u64| {
            let span = query(text).rows(rows).facts(|facts| {
                facts.server_address = Some("127.0.0.1".into());
                facts.server_port = Some(DATABASE_PORT);
            });
            ops.extend([Op::open(span), Op::Wait(NETWORK_MS), Op::work(DATABASE_AT, self.query_ms), Op::Close]);
        };
        let rows = u64::from(self.rows_one_by_one.max(10));
        for number in 0..self.queries {
            query(&format!("SELECT * FROM table_{number} WHERE owner = $1"), rows);
        }
        for _ in 0..self.rows_one_by_one {
            query(&format!("SELECT * FROM lines WHERE order_id = {}", random.below(10_000)), 3);
        }
        ops.extend([Op::Wait(self.pool_held_ms), Op::Release]);
    }

    fn call_peers(&self, random: &mut Random, ops: &mut Vec<Op>) {
        let mut calls: Vec<Vec<Op>> = Vec::new();
        for region in 0..self.peer_calls {
            let url = format!("http://127.0.0.1:{PEER_PORT}/regions/{region}/items");
            let call = client("GET").url(&url).scope("http.client").facts(|facts| {
                facts.http_status = Some(200);
                facts.server_address = Some("127.0.0.1".into());
                facts.server_port = Some(PEER_PORT);
            });
            let callee = server(PEER, "GET /regions/{id}/items");
            let inside = [
                Op::open(callee),
                Op::work(PEER_AT, self.peer_ms / 10.0),
                Op::Wait(random.around(self.peer_ms, 0.3)),
                Op::Close,
            ];
            calls.push(std::iter::once(Op::open(call)).chain(inside).chain([Op::Close]).collect());
        }
        if self.is_serial {
            ops.extend(calls.into_iter().flatten());
        } else if !calls.is_empty() {
            ops.push(Op::Fork(calls));
        }
    }

    fn query_store(&self, random: &mut Random, ops: &mut Vec<Op>) {
        if self.partitions == 0 {
            return;
        }
        let is_hot = random.unit() < self.hot_share;
        let partition = if is_hot { 0 } else { random.below(u64::from(self.partitions)) as usize };
        let span = document_query("SELECT * FROM c WHERE c.id = @id", &partition.to_string()).rows(1);
        ops.push(Op::Spend(Box::new(Spend { span, partition, charge: self.charge, attempt: 0 })));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_hold_and_a_seed_repeats() {
        let system = System { steps: vec![(6, 20)], think_ms: 20.0, ..System::default() };
        let (one, other) = (system.run("a"), system.run("a"));
        assert_eq!(one, other);
        let load = one.counted_load();
        let users = load.rate() * (load.latency().mean_ns / 1e9 + 0.020);
        assert!((5.7..6.3).contains(&users), "Little's law gives {users} users");
        let cpu = one.counted_usage(narrows_model::series::names::CPU_CORES, WEB).mean;
        let demand_ms = cpu / load.rate() * 1000.0;
        assert!((2.8..3.2).contains(&demand_ms), "the utilisation law gives {demand_ms} ms");
        assert_eq!(one.operations.len(), 2);
    }

    #[test]
    fn a_budget_refuses_what_exceeds_it() {
        let system = System { partitions: 2, provisioned: 100.0, charge: 3.0, ..System::default() };
        let trial = system.run("a");
        let web = trial.operations.iter().find(|operation| operation.service == WEB);
        let calls: f64 = web.map_or(0.0, |web| web.calls.iter().map(|call| call.throttled).sum());
        assert!(calls > 100.0, "{calls} refused");
        let most = trial.throughput().iter().flat_map(|p| p.consumed.clone()).map(|p| p.value).fold(0.0, f64::max);
        assert!((90.0..=100.0).contains(&most), "{most} request units in a second");
    }
}
