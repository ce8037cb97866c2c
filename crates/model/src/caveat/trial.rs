//! Limits of what a trial shows.

use serde::{Deserialize, Serialize};

use super::detail::{EndpointFault, FaultAction, Law, RequestBasis, SocketGap, SpanSource};
use super::instrumentation::{
    DifferentClocks, DoubledSpans, EndlessCalls, MissingParents, NegativeDurations, NestedDoubles, OwnParents,
    PoolSpans, RepeatedIds, SampledTraces, TracesWithoutRequest, UnseenDatabaseCalls, ZeroDurations,
};
use crate::load::{PartSummary, Recovery, ReportedLoad};

/// Limit of what a trial shows: an event that its figures include, data that is missing, or a sign that figures are wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TrialCaveat {
    // The load and its services, as they ran.
    /// A parameter was chosen by the rates that earlier variants reached.
    ParameterByEarlierRates {
        /// The parameter.
        parameter: String,
        /// Its value in this trial.
        value: String,
        /// Value that the experiment has.
        wanted: String,
        /// Share of the slowest variant's rate that was taken, 0 to 1, the variant, and its rate in requests per second;
        /// `None` if the value is as wanted.
        reduced_to: Option<(f64, String, f64)>,
        /// True if at least one of the variants that decide has run.
        is_known: bool,
        /// Variants that decide and did not run before.
        missing: Vec<String>,
    },
    /// A parameter was set to the CPU that a service used in another variant.
    ParameterByUsedCpu {
        /// The parameter.
        parameter: String,
        /// Its value in this trial.
        value: String,
        /// The parameter as a multiple of what was used.
        times: f64,
        /// The service.
        service: String,
        /// The variant.
        variant: String,
        /// Cores that each replica used in the mean; `None` if the variant did not run, so that the value is as written.
        cores: Option<f64>,
    },
    /// The trial searched for the capacity, so that its totals mix loads.
    CapacitySearch {
        /// Loads tried.
        probes: usize,
        /// Those of them that were above the capacity.
        above: usize,
    },
    /// A service ran without its caps on CPU and memory.
    WithoutCaps {
        /// The service.
        service: String,
        /// Why they could not be set.
        reason: String,
    },
    /// Somebody else has started a service of the experiment.
    ServiceElsewhere {
        /// The service.
        service: String,
        /// Where its replicas are, `HOST:PORT` each.
        places: Vec<String>,
        /// Whether all of them share the processors of the machine that measured.
        #[serde(default)]
        is_here: bool,
    },
    /// Pods of a cluster changed while the load ran.
    PodsChanged {
        /// Each change in words, such as `shop-1 was started again`.
        changes: Vec<String>,
    },
    /// A replica did not end when it was asked to.
    KilledAtStop {
        /// The replica.
        replica: String,
        /// Signal that asked it.
        signal: String,
        /// Time that it was given, nanoseconds.
        after_ns: f64,
        /// More on it, if anything is known.
        reason: Option<String>,
    },
    /// A replica ended under load.
    ReplicaEnded {
        /// The replica.
        replica: String,
        /// Its end, as in `exited with code 1`.
        end: String,
        /// Time from the beginning of the load, nanoseconds.
        after_ns: f64,
        /// True if it was started again before the load was over.
        is_restarted: bool,
    },
    /// An agent sent a part of the load.
    SentByAgent {
        /// Part.
        part: PartSummary,
    },
    /// An agent that looked at services had no room for some of their records.
    RecordsDropped {
        /// Name of the agent.
        agent: String,
        /// How many, at least 1.
        records: u64,
    },
    /// A fault that the experiment specifies.
    Fault {
        /// The replica.
        replica: String,
        /// Effect on it.
        action: FaultAction,
        /// Time from the beginning of the load, nanoseconds.
        after_ns: f64,
        /// Instant, nanoseconds since 1970.
        at_ns: i64,
        /// How the load came through it.
        recovery: Recovery,
    },
    /// A fault that did not happen, because the load was over.
    FaultNotReached {
        /// The service.
        service: String,
        /// When it was due, nanoseconds from the beginning of the load.
        after_ns: f64,
    },
    /// An objective that could no longer be met ended the load.
    LoadEndedEarly {
        /// The objective.
        objective: String,
        /// Its measured value.
        measured: String,
        /// Time from the beginning of the load, nanoseconds.
        after_ns: f64,
    },
    /// Requests that were given up at the end of the load, before their timeout.
    Undrained {
        /// How many, at least 1.
        requests: u64,
        /// Time that they were given after the last request, nanoseconds.
        drain_ns: f64,
        /// Their timeout, nanoseconds.
        timeout_ns: f64,
    },
    /// A server did not respond to queries for its metrics.
    MetricsNotReported {
        /// The replica.
        replica: String,
        /// Queries without a response, at least 1.
        failed: u64,
        /// All queries.
        queries: u64,
        /// Last error.
        error: String,
    },

    // Load by another program.
    /// The program that made the load was ended at its limit of time.
    LoadCommandEnded {
        /// The program.
        program: String,
        /// The limit, nanoseconds.
        limit_ns: f64,
    },
    /// k6 exited with the code that says that thresholds of its script were crossed.
    K6ThresholdsCrossed,
    /// The trial's totals are those that k6 counted.
    K6Totals {
        /// The totals.
        load: ReportedLoad,
        /// Metric that their latency is of.
        latency_of: String,
    },
    /// k6 left no summary that can be read.
    K6SummaryUnreadable {
        /// Its path.
        path: String,
        /// Why not.
        reason: String,
    },
    /// Requests were counted from spans, since another program made the load.
    RequestsCountedFromSpans {
        /// Requests.
        requests: u64,
        /// The spans.
        spans: SpanSource,
        /// True if the program itself reports totals, so that spans show only how the load went over time.
        has_totals: bool,
    },
    /// No span arrived from which requests could be counted.
    NoSpanBeginsRequest {
        /// Service whose spans were looked for; `None` for any.
        service: Option<String>,
        /// True if the program itself reports totals.
        has_totals: bool,
    },

    // Collected and imported.
    /// Requests of a system under somebody else's load, counted from spans.
    RequestsOfOthers {
        /// Requests; 0 if no span begins one.
        requests: u64,
        /// Service whose spans are the requests; `None` for any.
        service: Option<String>,
        /// The spans.
        basis: RequestBasis,
        /// Requests that are not counted second by second.
        left_out: u64,
        /// True if any server spans arrived.
        has_server_spans: bool,
    },
    /// The machine that imported the run is not the one that its services ran on.
    MachineNotKnown,
    /// A file that could not be read to its end.
    FileUnreadable {
        /// The error and its causes.
        error: String,
    },
    /// Separate intervals of an import that are too short to be counted.
    IntervalsNotCounted {
        /// How many, at least 1.
        intervals: usize,
    },
    /// Lines, traces or records of an import that are malformed.
    RecordsMalformed {
        /// How many, at least 1.
        records: u64,
        /// Complaint about the first.
        first: String,
    },
    /// Records of an import that exceed the run file's limits.
    RecordsOverLimit {
        /// How many, at least 1.
        records: u64,
    },
    /// Spans that came more than once.
    SpansRepeated {
        /// How many, at least 1.
        spans: u64,
    },
    /// Spans that do not say their kind, so that it is concluded.
    SpanKindsConcluded {
        /// How many, at least 1.
        spans: u64,
    },
    /// A watched process ended before the collection did.
    ProcessEnded {
        /// Process id.
        pid: u32,
        /// Its service.
        service: String,
        /// Time from the beginning, nanoseconds.
        after_ns: f64,
    },
    /// A signal ended the collection early.
    CollectionEnded {
        /// Time from the beginning, nanoseconds.
        after_ns: f64,
        /// Time that it was to last, nanoseconds.
        duration_ns: f64,
    },
    /// Nothing was sent to the addresses that were listened on.
    NothingSent {
        /// The addresses.
        listening: Vec<String>,
    },
    /// A page of metrics that was not read in full.
    Endpoint {
        /// Its address, without a query.
        url: String,
        /// The fault.
        fault: EndpointFault,
    },

    // Telemetry on its way into the run file.
    /// Requests with telemetry that are not OTLP or beyond the limits.
    TelemetryMalformed {
        /// How many, at least 1.
        requests: u64,
    },
    /// Requests with telemetry that did not carry the token.
    TelemetryUnauthenticated {
        /// How many, at least 1.
        requests: u64,
    },
    /// Requests with telemetry that arrived faster than they could be stored.
    TelemetryRejected {
        /// How many, at least 1.
        requests: u64,
        /// True if the load decides what is traced, so that its sampling is what helps.
        is_load_traced: bool,
    },
    /// Spans, points or log records that are invalid.
    TelemetryInvalid {
        /// How many, at least 1.
        records: u64,
    },
    /// Records that exceed the run file's limits.
    TelemetryOverLimit {
        /// How many, at least 1.
        records: u64,
    },
    /// Readings of the sampler that were lost because the run file was busy.
    ReadingsLost {
        /// How many, at least 1.
        readings: u64,
    },
    /// Sockets of services that are missing from the samples.
    SocketsNotSampled {
        /// Why.
        gap: SocketGap,
    },
    /// Spans that are not yet in the tables of the run file.
    SpansWaiting {
        /// How many, at least 1.
        spans: u64,
    },
    /// The run file neared its limit of size, so whole traces were left out.
    SpansThinned {
        /// Spans counted but not kept, at least 1.
        spans: u64,
        /// At the end, one trace of so many was kept.
        one_in: u64,
        /// True if failed and slow requests were preferred.
        is_slow_preferred: bool,
    },

    // Gaps in the evidence.
    /// Spans were refused because a limit was reached.
    SpansRefused {
        /// How many, at least 1.
        refused: u64,
        /// Spans kept.
        kept: u64,
    },
    /// Traces of an operation have more spans than are counted.
    TraceTooLarge {
        /// Service of the operation with most of them.
        service: String,
        /// The operation.
        operation: String,
        /// Its spans that are not counted, at least 1.
        spans: u64,
        /// Further operations with such traces.
        others: usize,
    },
    /// No service sent spans.
    NoSpans,
    /// A service that was started sent no spans.
    ServiceSilent {
        /// The service.
        service: String,
        /// Traces looked at.
        traces: usize,
    },
    /// Processes that were watched, but not started, sent no spans.
    ServicesSilent {
        /// The services.
        services: Vec<String>,
    },
    /// Sockets of a service show calls that its spans do not.
    CallsWithoutSpans {
        /// The service.
        service: String,
        /// A service of the trial, or an address.
        peer: String,
        /// Requests that wait for the peer without a span, under the heaviest load at any moment.
        unseen: f64,
        /// All that wait for it, as sockets show them.
        waiting: f64,
    },
    /// Spans of calls to databases carry no query text.
    QueryTextsMissing {
        /// The services that send them, at least one.
        services: Vec<String>,
    },
    /// A database ran, and no service sent a span of a call to one.
    DatabaseNotCalled {
        /// The database.
        database: String,
    },
    /// CPU of services was not sampled for long enough to be judged.
    CpuNotSampled {
        /// The services, at least one.
        services: Vec<String>,
        /// Samples that a window needs.
        points: usize,
        /// Time that they must span, nanoseconds.
        span_ns: i64,
    },
    /// Programs outside the run filled the machine.
    MachineCrowded {
        /// CPU that they used, cores.
        foreign_cores: f64,
        /// CPU of the machine, cores.
        cores: f64,
    },
    /// The hypervisor gave CPU time of the machine to others.
    CpuStolen {
        /// Highest share of the machine's CPU time, 0 to 1.
        share: f64,
    },

    // Laws that figures break.
    /// More requests were under way than there are users.
    TooManyUnderWay {
        /// Throughput × latency.
        law: Law,
        /// Users.
        users: u32,
    },
    /// Fewer requests were under way than users that do not think.
    TooFewUnderWay {
        /// Throughput × latency.
        law: Law,
        /// Users.
        users: u32,
        /// Window in which users were seen not to think.
        lightest: String,
    },
    /// A service used more CPU than its limit allows.
    CpuBeyondLimit {
        /// The service.
        service: String,
        /// CPU used, cores.
        cores: f64,
        /// Window in which it was used.
        window: String,
        /// The limit, cores.
        limit: f64,
    },
    /// The services and the generator used more CPU than the machine did.
    CpuBeyondMachine {
        /// CPU that they used, cores.
        cores: f64,
        /// Window in which it was used.
        window: String,
        /// CPU that the machine used, cores.
        machine: f64,
    },
    /// CPU of a service does not follow its requests along a line.
    CpuOffLine {
        /// The service.
        service: String,
        /// CPU used, cores.
        cores: f64,
        /// Rate of requests at which it was used, per second.
        rate: f64,
        /// Window in which it was used.
        window: String,
        /// CPU on the line at that rate, cores.
        line: f64,
    },
    /// A service responded to more calls than its own spans show.
    CallsLost {
        /// The service.
        service: String,
        /// Calls that it responded to.
        called: u64,
        /// Requests that its spans show.
        handled: u64,
    },

    // Instrumentation.
    /// Traces are a sample.
    SampledTraces(SampledTraces),
    /// Spans show fewer requests than the load sent, and nothing says why.
    UnmarkedSample {
        /// Requests that spans show.
        seen: u64,
        /// Responses that the load received.
        responses: u64,
    },
    /// Spans whose parent is missing.
    MissingParents(MissingParents),
    /// Spans with the id of another.
    RepeatedIds(RepeatedIds),
    /// Spans that name themselves as their parents.
    OwnParents(OwnParents),
    /// Traces that no request began.
    TracesWithoutRequest(TracesWithoutRequest),
    /// Most spans belong to no request of the load.
    StartUpSpans {
        /// Spans outside of requests, an estimate.
        outside: u64,
        /// All spans.
        spans: u64,
    },
    /// A request seems to wait for a database that no span shows.
    UnseenDatabaseCalls(UnseenDatabaseCalls),
    /// Clocks of two services differ.
    DifferentClocks(DifferentClocks),
    /// Spans that end before they begin.
    NegativeDurations(NegativeDurations),
    /// Spans that take no time.
    ZeroDurations(ZeroDurations),
    /// Calls that never seem to end.
    EndlessCalls(EndlessCalls),
    /// Calls reported twice, side by side.
    DoubledSpans(DoubledSpans),
    /// Calls reported twice, one within the other.
    NestedDoubles(NestedDoubles),
    /// Spans of connections between queries.
    PoolSpans(PoolSpans),
    /// Further places with the limit that the caveats before this one have.
    MorePlaces {
        /// Id of the check that found them.
        check: String,
        /// How many, at least 1.
        places: usize,
    },
}
