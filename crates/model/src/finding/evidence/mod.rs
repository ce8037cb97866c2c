//! The data that findings rest on: one file for each kind, the list of kinds, and files for what several kinds have in common.
//!
//! Evidence is data alone: counts, shares, times and names, from which the words of a finding are made and anything else
//! can be computed. Every type has a value without data, its default, for findings made in tests.

pub mod accept_queue;
pub mod blocking_command;
pub mod chatty_http;
pub mod conflict_retry;
pub mod connection_churn;
pub mod connection_limit;
pub mod cpu;
pub mod cpu_saturation;
pub mod cross_partition_query;
pub mod database_saturation;
pub mod descriptor_exhaustion;
pub mod disk_bound;
pub mod disk_full;
pub mod dns;
pub mod duplicate_query;
pub mod event_loop_lag;
pub mod few_clients;
pub mod garbage_collection;
pub mod generator_limited;
pub mod hot_partition;
pub mod instrumentation_gap;
pub mod interpreter_lock;
pub mod load;
pub mod lock_wait;
pub mod memory_growth;
pub mod n_plus_one;
pub mod not_steady;
pub mod offered_load_limited;
pub mod one_core;
pub mod outage;
pub mod pool_wait;
pub mod port_exhaustion;
pub mod provisioned_rate;
pub mod retrograde_throughput;
pub mod retry_storm;
pub mod sequential_calls;
pub mod serial_fan_out;
pub mod serialised_section;
pub mod sidecar_cost;
pub mod slow_dependency;
pub mod slow_query;
pub mod sockets;
pub mod stall;
pub mod straggler_branch;
pub mod thread_pool;
pub mod throttling;
pub mod time_outside_spans;
pub mod unequal_rates;
pub mod uneven_assignment;
pub mod variant;

use serde::{Deserialize, Serialize};

use super::kind::kinds;

kinds! {
    /// Connections wait before a service accepts them, or are dropped.
    AcceptQueue => "accept-queue", accept_queue;
    /// A command holds the one thread of a server for long, and all others wait.
    BlockingCommand => "blocking-command", blocking_command;
    /// A request calls another service once for each item of an earlier response.
    ChattyHttp => "chatty-http", chatty_http;
    /// Database transactions conflict; one of them fails or is repeated.
    ConflictRetry => "conflict-retry", conflict_retry;
    /// A service opens a connection for nearly every call.
    ConnectionChurn => "connection-churn", connection_churn;
    /// A database refuses connections because a limit of their number is reached.
    ConnectionLimit => "connection-limit", connection_limit;
    /// A service uses all the CPU it may or can use.
    CpuSaturation => "cpu-saturation", cpu_saturation;
    /// A query goes to every partition of a store, and most have no rows for it.
    CrossPartitionQuery => "cross-partition-query", cross_partition_query;
    /// A database has no capacity left, so every query waits for others.
    DatabaseSaturation => "database-saturation", database_saturation;
    /// A process has opened nearly all the files and connections that it may.
    DescriptorExhaustion => "descriptor-exhaustion", descriptor_exhaustion;
    /// Requests wait for a disk, and more load brings no more throughput.
    DiskBound => "disk-bound", disk_bound;
    /// Operations of a service or a database fail because a disk is full.
    DiskFull => "disk-full", disk_full;
    /// Requests wait while a service looks names up.
    Dns => "dns", dns;
    /// A request sends a query again whose result it already has.
    DuplicateQuery => "duplicate-query", duplicate_query;
    /// Callbacks block the event loop of a service, and every request waits for it.
    EventLoopLag => "event-loop-lag", event_loop_lag;
    /// The load has too few clients for a hash of them to spread requests evenly.
    FewClients => "few-clients", few_clients;
    /// The garbage collector of a runtime stops a service for much of the time, or for long.
    GarbageCollection => "garbage-collection", garbage_collection;
    /// The load generator, not the system, determined the figures.
    GeneratorLimited => "generator-limited", generator_limited;
    /// One of several equal partitions or replicas gets more than its share and is the slowest for it.
    HotPartition => "hot-partition", hot_partition;
    /// Most of an operation's time is unexplained, because a callee sends no spans.
    InstrumentationGap => "instrumentation-gap", instrumentation_gap;
    /// The threads of a process take turns at one lock, so that together they use no more than one core.
    InterpreterLock => "interpreter-lock", interpreter_lock;
    /// Statements wait for locks that other sessions of the database hold.
    LockWait => "lock-wait", lock_wait;
    /// The memory of a service grows towards its limit, or it was killed there.
    MemoryGrowth => "memory-growth", memory_growth;
    /// A request queries the database once for each row of an earlier result.
    NPlusOne => "n-plus-one", n_plus_one;
    /// A window that is called steady is not, so its mean depends on when it is taken.
    NotSteady => "not-steady", not_steady;
    /// The load asks too little to show what the system can carry.
    OfferedLoadLimited => "offered-load-limited", offered_load_limited;
    /// A replica was down during the load.
    Outage => "outage", outage;
    /// Requests wait for a connection from a pool.
    PoolWait => "pool-wait", pool_wait;
    /// A service cannot open connections because no local port is left for them.
    PortExhaustion => "port-exhaustion", port_exhaustion;
    /// A partition of a store spends nearly all of its provisioned throughput.
    ProvisionedRate => "provisioned-rate", provisioned_rate;
    /// More load, less throughput.
    RetrogradeThroughput => "retrograde-throughput", retrograde_throughput;
    /// Failing calls are repeated and add load to a system that already cannot respond.
    RetryStorm => "retry-storm", retry_storm;
    /// Requests of a service without spans wait for many calls, one after another.
    SequentialCalls => "sequential-calls", sequential_calls;
    /// A request makes independent calls one after another.
    SerialFanOut => "serial-fan-out", serial_fan_out;
    /// Requests of a service take turns, so that one is at work at a time.
    SerialisedSection => "serialised-section", serialised_section;
    /// Cost of proxies beside the services in CPU and time.
    SidecarCost => "sidecar-cost", sidecar_cost;
    /// Requests wait for a dependency that sends no spans.
    SlowDependency => "slow-dependency", slow_dependency;
    /// A request waits for one slow query.
    SlowQuery => "slow-query", slow_query;
    /// Now and then a system sends no response for a while, and all requests of that time wait.
    Stall => "stall", stall;
    /// One of several parallel branches is nearly always the last.
    StragglerBranch => "straggler-branch", straggler_branch;
    /// All threads of a pool work, and requests wait for one.
    ThreadPool => "thread-pool", thread_pool;
    /// A store rejects calls beyond its provisioned throughput, and they are retried.
    Throttling => "throttling", throttling;
    /// Users wait much longer than the spans of the service last.
    TimeOutsideSpans => "time-outside-spans", time_outside_spans;
    /// Two variants completed different rates, so their CPU and latency cannot be compared.
    UnequalRates => "unequal-rates", unequal_rates;
    /// Some replicas have more partitions than others and are full, while the others have room.
    UnevenAssignment => "uneven-assignment", uneven_assignment;
}

/// How often something happens in each request that it happens in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// In the request with fewest.
    pub least: usize,
    /// In the request in the middle, each as often as its trace stands for.
    pub median: usize,
    /// In the request with most.
    pub most: usize,
}

impl Counts {
    /// Whether the count is not the same in all requests.
    pub fn vary(self) -> bool {
        self.most > self.least
    }
}
