//! Numbers over time: what the sampler read and what services reported as metrics. And what they printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub mod partitions;
pub mod servers;
pub mod services;

/// Subject of a series. Two points belong to one series when all of this is equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
pub struct SeriesKey {
    /// The metric's name, such as `process.cpu.cores` (see [`names`]) or what a service reported.
    pub name: String,
    /// UCUM unit, such as `By` or `s`; empty when there is none.
    pub unit: String,
    /// The service, `narrows` for the generator, empty for the host.
    pub service: String,
    /// The replica, from 0.
    pub replica: u32,
    /// Everything else that distinguishes it from its sisters.
    pub labels: BTreeMap<String, String>,
}

/// The names of what the sampler writes.
///
/// They are OpenTelemetry's where a semantic convention has one. What the conventions count up is written as a rate over
/// the time since the reading before, and its unit ends in `/s`, so that it is never taken for a counter of that name
/// which a service reports. All of it, with units: [`names::SAMPLED`].
pub mod names {
    /// The label of a counter that says what its values count from; absent where it is a start. Prometheus has it too.
    pub const TEMPORALITY: &str = "__temporality__";
    /// The value of [`TEMPORALITY`] where values count from the point before.
    pub const DELTA: &str = "delta";
    /// CPU used by all processes of a replica, in cores: CPU time (user and system) ÷ wall time.
    pub const CPU_CORES: &str = "process.cpu.cores";
    /// The same by [`CPU_MODE`]: seconds of CPU time per second. The two modes add up to [`CPU_CORES`].
    pub const CPU_TIME: &str = "process.cpu.time";
    /// CPU used by a replica's busiest single thread, in cores, 0 to 1.
    pub const BUSIEST_THREAD_CORES: &str = "process.cpu.busiest_thread";
    /// Seconds per second that this thread was ready to run and waited for a processor: others had them, or a limit of
    /// its control group. With [`BUSIEST_THREAD_CORES`] it is how busy the thread was, 0 to 1. Absent where the kernel
    /// does not tell.
    pub const BUSIEST_THREAD_WAIT: &str = "process.cpu.busiest_thread_wait";
    /// Seconds per second that the busiest thread which collects garbage while the program stands still ran, or waited
    /// for a processor, 0 to 1: about as long as the program stood still. Only of Java virtual machines with the serial,
    /// parallel or G1 collector, whose threads have names.
    pub const COLLECTOR_THREAD: &str = "process.cpu.collector_thread";
    /// Seconds per second that all threads of a replica were ready to run and waited for a processor, added up over
    /// threads: others had them, or a limit of its control group. Absent where the kernel does not tell.
    pub const CPU_WAIT: &str = "process.cpu.wait";
    /// Resident memory of all processes of a replica, in bytes; shared pages count once per process.
    pub const MEMORY_BYTES: &str = "process.memory.rss";
    /// Proportional set size of all processes of a replica, in bytes: a page shared by n processes counts 1/n in each.
    pub const MEMORY_PSS_BYTES: &str = "process.memory.pss";
    /// How often the kernel took a thread of the replica off a processor, per second, by [`CONTEXT_SWITCH_TYPE`].
    /// Switches of threads that ended since the reading before are missing.
    pub const CONTEXT_SWITCHES: &str = "process.context_switches";
    /// Descriptors that a replica's processes have open.
    pub const OPEN_DESCRIPTORS: &str = "process.open_file_descriptor.count";
    /// The soft limit on open descriptors of that process of a replica which is closest to its own.
    pub const DESCRIPTORS_LIMIT: &str = "process.open_file_descriptor.limit";
    /// That process's open descriptors as a share of this limit, from 0; above 1 after the limit was lowered.
    pub const DESCRIPTORS_UTILIZATION: &str = "process.open_file_descriptor.utilization";
    /// Threads of a replica's processes.
    pub const THREADS: &str = "process.thread.count";
    /// Threads of a replica's processes by what they do, [`THREAD_STATE`]: the mean over samples since the point before.
    /// Those that wait for a [network](super::ThreadState::Network) response are also distinguished by [`NETWORK_PEER`].
    pub const THREAD_STATES: &str = "process.thread.state";
    /// Bytes per second that a replica's processes had read from and written to block devices, by [`DISK_DIRECTION`].
    /// Reads that the page cache served are not in it; writes count when a page becomes dirty.
    pub const DISK_IO: &str = "process.disk.io";
    /// Bytes per second through the interfaces of the network namespace that a replica's processes live in, if that is
    /// not the sampler's own, by [`NETWORK_DIRECTION`] and [`NETWORK_INTERFACE`]. Replicas in one namespace have the
    /// same figures.
    pub const NETWORK_IO: &str = "process.network.io";
    /// Connections that wait to be accepted in a replica's listening socket, by [`SERVER_PORT`]; in the fullest one where
    /// several listen on one port.
    pub const ACCEPT_QUEUE: &str = "process.network.accept_queue.length";
    /// How many may wait in that socket: the lesser of what the program passed to `listen` and the machine's limit. The
    /// kernel lets one more wait. Absent in a network namespace other than the sampler's.
    pub const ACCEPT_QUEUE_LIMIT: &str = "process.network.accept_queue.limit";
    /// Attempts to connect that the replica's listening sockets of a port dropped, per second, nearly always because the
    /// accept queue was full. Absent in a network namespace other than the sampler's.
    pub const ACCEPT_QUEUE_DROPS: &str = "process.network.accept_queue.drops";
    /// Connections that any socket dropped because its accept queue was full, per second, in the network namespace that
    /// a replica's processes live in, if that is not the sampler's own.
    pub const LISTEN_OVERFLOWS: &str = "process.network.listen_overflows";
    /// As [`HOST_TIME_WAIT`], of a replica's network namespace; only where that is another than the sampler's.
    pub const TIME_WAIT: &str = "process.network.tcp.time_wait";
    /// As [`HOST_EPHEMERAL_PORTS`], of that namespace.
    pub const EPHEMERAL_PORTS: &str = "process.network.ephemeral_ports";
    /// TCP connections that a replica made to a peer, by [`NETWORK_PEER`]: the mean number open since the point before.
    /// Replicas and the generator have it; so do all names up to [`CONNECTION_BUSY`].
    pub const CONNECTIONS: &str = "process.network.connection.count";
    /// Of these, connections that carry data one way only and therefore count in no series of requests.
    pub const CONNECTIONS_ONE_WAY: &str = "process.network.connection.one_way";
    /// Connections that the replica opened to a peer, per second.
    pub const CONNECTIONS_OPENED: &str = "process.network.connection.opened";
    /// Requests that the replica sent to a peer and that have no response yet: the mean over samples of the sockets
    /// since the point before, at most one for each connection. A UDP socket connected to port 53 is a look-up of a name.
    pub const REQUESTS_OUTSTANDING: &str = "process.network.request.outstanding";
    /// Connections for which a sample could not decide whether a request is outstanding, as the mean number:
    /// [`REQUESTS_OUTSTANDING`] may be higher by up to this.
    pub const REQUESTS_UNDECIDED: &str = "process.network.request.undecided";
    /// Responses of a peer that lie in the replica's receive queues, the mean number: the replica's own delay.
    pub const RESPONSES_UNREAD: &str = "process.network.response.unread";
    /// Requests that the replica sent to a peer, per second: the lesser of the data segments sent and received, so that a
    /// request or a response of several segments counts once if the other has one.
    pub const REQUEST_RATE: &str = "process.network.request.rate";
    /// Bytes per second over connections to a peer, by [`NETWORK_DIRECTION`] too.
    pub const CONNECTION_IO: &str = "process.network.connection.io";
    /// Seconds per second for which data sent to a peer was unacknowledged, added up over connections that carry requests.
    /// For calls below 40 ms it is the mean number of requests outstanding, for longer ones it is less.
    pub const CONNECTION_BUSY: &str = "process.network.connection.busy";
    /// Connections that clients made to a replica and whose other end is not sampled, by [`SERVER_PORT`]: the mean
    /// number open since the point before. So are the next two.
    pub const CLIENT_CONNECTIONS: &str = "process.network.client.connection.count";
    /// Connections that these clients opened, per second.
    pub const CLIENT_CONNECTIONS_OPENED: &str = "process.network.client.connection.opened";
    /// Requests of these clients that were received and have no response yet, the mean number.
    pub const CLIENT_REQUESTS: &str = "process.network.client.request.outstanding";
    /// CPU that the closest limit of a replica's own control group allows, in cores: quota ÷ period.
    pub const CGROUP_CPU_LIMIT: &str = "cgroup.cpu.limit";
    /// Periods of that control group in which something was runnable, per second.
    pub const CGROUP_PERIODS: &str = "cgroup.cpu.periods";
    /// Periods in which its quota was used up, per second; over [`CGROUP_PERIODS`] it is the share throttled.
    pub const CGROUP_THROTTLED_PERIODS: &str = "cgroup.cpu.throttled_periods";
    /// Seconds per second that its processors stood throttled, added up over processors.
    pub const CGROUP_THROTTLED_TIME: &str = "cgroup.cpu.throttled_time";
    /// Memory charged to the closest control group of a replica that has a limit, page cache included, in bytes.
    pub const CGROUP_MEMORY_USAGE: &str = "cgroup.memory.usage";
    /// That limit, in bytes.
    pub const CGROUP_MEMORY_LIMIT: &str = "cgroup.memory.limit";
    /// Processes of that control group and of those below it that the kernel killed for lack of memory, per second.
    /// Absent before Linux 4.13.
    pub const CGROUP_MEMORY_OOM_KILLS: &str = "cgroup.memory.oom_kills";
    /// As [`HOST_PRESSURE_AVERAGE`], of the control group (version 2) that a replica's processes have to themselves.
    pub const CGROUP_PRESSURE_AVERAGE: &str = "cgroup.pressure.some.avg10";
    /// As [`HOST_PRESSURE_STALLED`], of that control group.
    pub const CGROUP_PRESSURE_STALLED: &str = "cgroup.pressure.some.stalled";
    /// Processors of the host. The host's series with a service are of the machine of that replica, where an agent looked at
    /// it: those of its CPU.
    pub const HOST_CPU_COUNT: &str = "system.cpu.logical.count";
    /// Share of the host's CPU time that was not idle, 0 to 1.
    pub const HOST_CPU_UTILIZATION: &str = "host.cpu.utilization";
    /// Share of the host's CPU time that the hypervisor took, 0 to 1.
    pub const HOST_CPU_STEAL: &str = "host.cpu.steal";
    /// Bytes per second through the interfaces of the sampler's own network namespace, by [`NETWORK_DIRECTION`] and
    /// [`NETWORK_INTERFACE`]. A packet that passes a bridge counts on each interface that it passes.
    pub const HOST_NETWORK_IO: &str = "host.network.io";
    /// As [`LISTEN_OVERFLOWS`], of the sampler's own network namespace.
    pub const HOST_LISTEN_OVERFLOWS: &str = "host.network.listen_overflows";
    /// TCP connections in the state TIME_WAIT in the sampler's own network namespace: closed ones that still hold a port.
    pub const HOST_TIME_WAIT: &str = "host.network.tcp.time_wait";
    /// Local ports that this namespace has for connections to one peer: the size of `net.ipv4.ip_local_port_range`.
    pub const HOST_EPHEMERAL_PORTS: &str = "host.network.ephemeral_ports";
    /// Share of the last ten seconds in which a task waited for the [`PRESSURE_RESOURCE`], 0 to 1: the kernel's own
    /// moving average ("some avg10" of its pressure stall information).
    pub const HOST_PRESSURE_AVERAGE: &str = "host.pressure.some.avg10";
    /// The same share since the reading before, from the kernel's total.
    pub const HOST_PRESSURE_STALLED: &str = "host.pressure.some.stalled";
    /// Memory that the kernel estimates could be had without swapping (`MemAvailable`), in bytes.
    pub const HOST_MEMORY_AVAILABLE: &str = "system.memory.linux.available";
    /// Tasks that run, wait to run or wait for a disk: the kernel's average over one minute.
    pub const HOST_LOAD: &str = "system.cpu.load_average.1m";

    /// The label that separates `user` from `system` time.
    pub const CPU_MODE: &str = "cpu.mode";
    /// The label that separates `voluntary` from `involuntary` switches.
    pub const CONTEXT_SWITCH_TYPE: &str = "process.context_switch.type";
    /// The label that separates `read` from `write`.
    pub const DISK_DIRECTION: &str = "disk.io.direction";
    /// The label that separates `receive` from `transmit`.
    pub const NETWORK_DIRECTION: &str = "network.io.direction";
    /// Value of [`NETWORK_DIRECTION`] for received bytes.
    pub const RECEIVE: &str = "receive";
    /// Value of [`NETWORK_DIRECTION`] for sent bytes.
    pub const TRANSMIT: &str = "transmit";
    /// The label that names the interface, such as `eth0`.
    pub const NETWORK_INTERFACE: &str = "network.interface.name";
    /// The label that names the port of a listening socket.
    pub const SERVER_PORT: &str = "server.port";
    /// The label that says what threads do: [`ThreadState::as_str`](super::ThreadState::as_str).
    pub const THREAD_STATE: &str = "thread.state";
    /// The label that names a peer, which threads wait for or a replica connected to: a replica that has a network of its
    /// own or is elsewhere, as [`replica_label`] writes it; else address and port, or [`OTHER_PEERS`].
    pub const NETWORK_PEER: &str = "network.peer";
    /// The label's value for peers beyond the number that are named, and for sockets that are not TCP.
    pub const OTHER_PEERS: &str = "other";
    /// The label that names what was waited for: `cpu`, `memory` or `io`.
    pub const PRESSURE_RESOURCE: &str = "resource";

    /// The value of [`NETWORK_PEER`] for a replica: `shop[0]`.
    pub fn replica_label(service: &str, replica: u32) -> String {
        format!("{service}[{replica}]")
    }

    /// The service and the replica of such a value; `None` of another.
    pub fn labelled_replica(label: &str) -> Option<(&str, u32)> {
        let (service, rest) = label.split_once('[')?;
        Some((service, rest.strip_suffix(']')?.parse().ok()?)).filter(|(service, _)| !service.is_empty())
    }

    /// All that the sampler writes: name and UCUM unit.
    pub const SAMPLED: [(&str, &str); 54] = [
        (CPU_CORES, "{cpu}"),
        (CPU_TIME, "s/s"),
        (BUSIEST_THREAD_CORES, "{cpu}"),
        (BUSIEST_THREAD_WAIT, "s/s"),
        (COLLECTOR_THREAD, "s/s"),
        (CPU_WAIT, "s/s"),
        (MEMORY_BYTES, "By"),
        (MEMORY_PSS_BYTES, "By"),
        (CONTEXT_SWITCHES, "{context_switch}/s"),
        (OPEN_DESCRIPTORS, "{file_descriptor}"),
        (DESCRIPTORS_LIMIT, "{file_descriptor}"),
        (DESCRIPTORS_UTILIZATION, "1"),
        (THREADS, "{thread}"),
        (THREAD_STATES, "{thread}"),
        (DISK_IO, "By/s"),
        (NETWORK_IO, "By/s"),
        (ACCEPT_QUEUE, "{connection}"),
        (ACCEPT_QUEUE_LIMIT, "{connection}"),
        (ACCEPT_QUEUE_DROPS, "{connection}/s"),
        (LISTEN_OVERFLOWS, "{connection}/s"),
        (TIME_WAIT, "{connection}"),
        (EPHEMERAL_PORTS, "{port}"),
        (CONNECTIONS, "{connection}"),
        (CONNECTIONS_ONE_WAY, "{connection}"),
        (CONNECTIONS_OPENED, "{connection}/s"),
        (REQUESTS_OUTSTANDING, "{request}"),
        (REQUESTS_UNDECIDED, "{request}"),
        (RESPONSES_UNREAD, "{response}"),
        (REQUEST_RATE, "{request}/s"),
        (CONNECTION_IO, "By/s"),
        (CONNECTION_BUSY, "s/s"),
        (CLIENT_CONNECTIONS, "{connection}"),
        (CLIENT_CONNECTIONS_OPENED, "{connection}/s"),
        (CLIENT_REQUESTS, "{request}"),
        (CGROUP_CPU_LIMIT, "{cpu}"),
        (CGROUP_PERIODS, "{period}/s"),
        (CGROUP_THROTTLED_PERIODS, "{period}/s"),
        (CGROUP_THROTTLED_TIME, "s/s"),
        (CGROUP_MEMORY_USAGE, "By"),
        (CGROUP_MEMORY_LIMIT, "By"),
        (CGROUP_MEMORY_OOM_KILLS, "{process}/s"),
        (CGROUP_PRESSURE_AVERAGE, "1"),
        (CGROUP_PRESSURE_STALLED, "s/s"),
        (HOST_CPU_COUNT, "{cpu}"),
        (HOST_CPU_UTILIZATION, "1"),
        (HOST_CPU_STEAL, "1"),
        (HOST_NETWORK_IO, "By/s"),
        (HOST_LISTEN_OVERFLOWS, "{connection}/s"),
        (HOST_TIME_WAIT, "{connection}"),
        (HOST_EPHEMERAL_PORTS, "{port}"),
        (HOST_PRESSURE_AVERAGE, "1"),
        (HOST_PRESSURE_STALLED, "s/s"),
        (HOST_MEMORY_AVAILABLE, "By"),
        (HOST_LOAD, "{task}"),
    ];

    /// Whether a replica was up under load, 1 or 0, written by the run whenever that changes. A replica without points
    /// was up throughout.
    pub const REPLICA_UP: &str = "narrows.replica.up";
    /// 1 at each time at which a replica was found to have ended under load after the kernel had killed a process of it
    /// at its memory cap, written by the run.
    pub const REPLICA_OUT_OF_MEMORY: &str = "narrows.replica.out_of_memory";
    /// Provisioned throughput that a store has spent since it started, in its own units (request units): a
    /// cumulative counter, one series per physical partition, labelled [`PARTITION`]. Reported by the store itself.
    pub const THROUGHPUT_CONSUMED: &str = "db.throughput.consumed";
    /// Throughput that the store may spend each second, in the same units: a gauge with the same labels.
    pub const THROUGHPUT_PROVISIONED: &str = "db.throughput.provisioned";
    /// The label that distinguishes physical partitions.
    pub const PARTITION: &str = "db.partition.id";
    /// The service name under which the generator's own process stands.
    pub const GENERATOR: &str = "narrows";
}

/// State of a thread at the instant of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadState {
    /// It runs, or is ready to run and waits for a processor.
    Running,
    /// It waits for a disk.
    Disk,
    /// It sleeps for a time.
    Sleep,
    /// It waits for the response of a peer that it connected to, or to send to it.
    Network,
    /// It waits for another thread: for a lock, or in a pool for work.
    Lock,
    /// It waits for events, a connection or the next request.
    Events,
    /// None of these.
    Other,
}

impl ThreadState {
    /// All states.
    pub const ALL: [Self; 7] =
        [Self::Running, Self::Disk, Self::Sleep, Self::Network, Self::Lock, Self::Events, Self::Other];

    /// The word used in series.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Disk => "disk",
            Self::Sleep => "sleep",
            Self::Network => "network",
            Self::Lock => "lock",
            Self::Events => "events",
            Self::Other => "other",
        }
    }
}

/// One value of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// When.
    pub time_ns: i64,
    /// The value, in the series's unit.
    pub value: f64,
}

impl SeriesKey {
    /// True if each value is what a counter grew by since the point before, not since its start.
    pub fn is_delta(&self) -> bool {
        self.labels.get(names::TEMPORALITY).is_some_and(|temporality| temporality == names::DELTA)
    }
}

/// A series with its points, in order of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Subject.
    pub key: SeriesKey,
    /// Its points.
    pub points: Vec<Point>,
}

impl Series {
    /// The increase per second between neighbouring points of a counter, each at the later point's time. Of a cumulative
    /// counter, a value that falls is one that began anew; of [deltas](SeriesKey::is_delta), each value is an increase.
    /// Points of one instant are passed over.
    pub fn rates(&self) -> Vec<Point> {
        let is_delta = self.key.is_delta();
        let pairs = self.points.windows(2).filter(|pair| pair[1].time_ns > pair[0].time_ns);
        pairs
            .map(|pair| {
                let grown = pair[1].value - pair[0].value;
                let grown = if is_delta || grown < 0.0 { pair[1].value } else { grown };
                let seconds = pair[1].time_ns.saturating_sub(pair[0].time_ns) as f64 / 1e9;
                Point { time_ns: pair[1].time_ns, value: grown / seconds }
            })
            .collect()
    }
}

/// A line that a service printed or a log record that it sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was printed or, as it states, happened.
    pub time_ns: i64,
    /// The service.
    pub service: String,
    /// The replica, from 0.
    pub replica: u32,
    /// Where it came from.
    pub stream: LogStream,
    /// OpenTelemetry severity text, or empty.
    pub severity: String,
    /// The text.
    pub text: String,
    /// The trace it belongs to, if it names one.
    pub trace_id: Option<[u8; 16]>,
}

/// Where a log line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    /// The process's standard output.
    Stdout,
    /// The process's standard error.
    Stderr,
    /// An OTLP log record.
    Otlp,
}

impl LogStream {
    /// The word used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            LogStream::Stdout => "stdout",
            LogStream::Stderr => "stderr",
            LogStream::Otlp => "otlp",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_begins_anew_has_no_negative_rate() {
        let point = |time_ms: i64, value| Point { time_ns: time_ms * 1_000_000, value };
        let points = vec![point(0, 10.0), point(500, 20.0), point(500, 21.0), point(1500, 5.0)];
        let rates = Series { key: SeriesKey::default(), points }.rates();
        assert_eq!(rates, [point(500, 20.0), point(1500, 5.0)]);
    }

    #[test]
    fn each_delta_is_an_increase() {
        let mut key = SeriesKey::default();
        key.labels.insert(names::TEMPORALITY.to_owned(), names::DELTA.to_owned());
        let point = |time_s: i64, value| Point { time_ns: time_s * 1_000_000_000, value };
        let rates = Series { key, points: vec![point(0, 9.0), point(10, 20.0), point(30, 30.0)] }.rates();
        assert_eq!(rates, [point(10, 2.0), point(30, 1.5)]);
    }
}
