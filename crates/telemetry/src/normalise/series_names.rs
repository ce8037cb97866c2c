//! Metrics that were renamed, and their labels.
//!
//! Source: the migration guides of the OpenTelemetry specification for HTTP, databases and RPC; its schema files 1.21.0
//! to 1.25.0 for the JVM and for processes; its registry of deprecated metrics for the rest; HikariCP's tracker for
//! Micrometer; `opentelemetry-instrumentation-system-metrics` for CPython. Metrics whose meaning changed with the name,
//! and Micrometer's own ones beyond the pool's, are left as they come.

/// The label under which a renamed series keeps the name it came with.
pub const ORIGINAL_NAME: &str = "narrows.original_name";

/// A metric of older instrumentation and what it is called now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricRenamed {
    /// Name that older instrumentation sends.
    pub old: &'static str,
    /// The unit (UCUM) that it has when it says none; empty for a plain count.
    pub old_unit: &'static str,
    /// Present name.
    pub new: &'static str,
    /// The unit that it has now.
    pub new_unit: &'static str,
    /// A label, and its value, that the old name said and the new one does not.
    pub label: Option<(&'static str, &'static str)>,
}

const fn same(old: &'static str, new: &'static str, unit: &'static str) -> MetricRenamed {
    MetricRenamed { old, old_unit: unit, new, new_unit: unit, label: None }
}

/// From milliseconds to seconds.
const fn time(old: &'static str, new: &'static str) -> MetricRenamed {
    MetricRenamed { old, old_unit: "ms", new, new_unit: "s", label: None }
}

const fn connections(old: &'static str, state: &'static str) -> MetricRenamed {
    let label = Some(("db.client.connection.state", state));
    MetricRenamed { old, old_unit: "", new: "db.client.connection.count", new_unit: "{connection}", label }
}

/// Metric names; each old one once.
pub const METRICS_RENAMED: &[MetricRenamed] = &[
    time("http.server.duration", "http.server.request.duration"),
    time("http.client.duration", "http.client.request.duration"),
    same("http.server.request.size", "http.server.request.body.size", "By"),
    same("http.server.response.size", "http.server.response.body.size", "By"),
    same("http.client.request.size", "http.client.request.body.size", "By"),
    same("http.client.response.size", "http.client.response.body.size", "By"),
    time("rpc.server.duration", "rpc.server.call.duration"),
    time("rpc.client.duration", "rpc.client.call.duration"),
    same("messaging.publish.duration", "messaging.client.operation.duration", "s"),
    same("messaging.receive.duration", "messaging.client.operation.duration", "s"),
    same("messaging.publish.messages", "messaging.client.sent.messages", "{message}"),
    same("messaging.client.published.messages", "messaging.client.sent.messages", "{message}"),
    same("messaging.receive.messages", "messaging.client.consumed.messages", "{message}"),
    same("messaging.process.messages", "messaging.client.consumed.messages", "{message}"),
    same("db.client.connections.usage", "db.client.connection.count", "{connection}"),
    same("db.client.connections.idle.max", "db.client.connection.idle.max", "{connection}"),
    same("db.client.connections.idle.min", "db.client.connection.idle.min", "{connection}"),
    same("db.client.connections.max", "db.client.connection.max", "{connection}"),
    same("db.client.connections.pending_requests", "db.client.connection.pending_requests", "{request}"),
    same("db.client.connections.timeouts", "db.client.connection.timeouts", "{timeout}"),
    time("db.client.connections.create_time", "db.client.connection.create_time"),
    time("db.client.connections.wait_time", "db.client.connection.wait_time"),
    time("db.client.connections.use_time", "db.client.connection.use_time"),
    connections("hikaricp.connections.active", "used"),
    connections("hikaricp.connections.idle", "idle"),
    same("hikaricp.connections.max", "db.client.connection.max", "{connection}"),
    same("hikaricp.connections.min", "db.client.connection.idle.min", "{connection}"),
    same("hikaricp.connections.pending", "db.client.connection.pending_requests", "{request}"),
    same("hikaricp.connections.timeout", "db.client.connection.timeouts", "{timeout}"),
    time("hikaricp.connections.acquire", "db.client.connection.wait_time"),
    time("hikaricp.connections.usage", "db.client.connection.use_time"),
    time("hikaricp.connections.creation", "db.client.connection.create_time"),
    same(
        "db.client.cosmosdb.operation.request_charge",
        "azure.cosmosdb.client.operation.request_charge",
        "{request_unit}",
    ),
    same("db.client.cosmosdb.active_instance.count", "azure.cosmosdb.client.active_instance.count", "{instance}"),
    same("process.threads", "process.thread.count", "{thread}"),
    same("process.open_file_descriptors", "process.unix.file_descriptor.count", "{file_descriptor}"),
    same("process.open_file_descriptor.count", "process.unix.file_descriptor.count", "{file_descriptor}"),
    same("process.runtime.cpython.cpu_time", "process.cpu.time", "s"),
    same("process.runtime.cpython.cpu.utilization", "process.cpu.utilization", "1"),
    same("process.runtime.cpython.thread_count", "process.thread.count", "{thread}"),
    same("process.runtime.jvm.memory.usage", "jvm.memory.used", "By"),
    same("process.runtime.jvm.memory.committed", "jvm.memory.committed", "By"),
    same("process.runtime.jvm.memory.limit", "jvm.memory.limit", "By"),
    same("process.runtime.jvm.memory.init", "jvm.memory.init", "By"),
    same("process.runtime.jvm.memory.usage_after_last_gc", "jvm.memory.used_after_last_gc", "By"),
    same("jvm.memory.usage", "jvm.memory.used", "By"),
    same("jvm.memory.usage_after_last_gc", "jvm.memory.used_after_last_gc", "By"),
    time("process.runtime.jvm.gc.duration", "jvm.gc.duration"),
    same("process.runtime.jvm.threads.count", "jvm.thread.count", "{thread}"),
    same("process.runtime.jvm.classes.loaded", "jvm.class.loaded", "{class}"),
    same("process.runtime.jvm.classes.unloaded", "jvm.class.unloaded", "{class}"),
    same("process.runtime.jvm.classes.current_loaded", "jvm.class.count", "{class}"),
    same("process.runtime.jvm.cpu.time", "jvm.cpu.time", "s"),
    same("process.runtime.jvm.cpu.utilization", "jvm.cpu.recent_utilization", "1"),
    same("process.runtime.jvm.cpu.recent_utilization", "jvm.cpu.recent_utilization", "1"),
    same("process.runtime.jvm.system.cpu.utilization", "jvm.system.cpu.utilization", "1"),
    same("process.runtime.jvm.system.cpu.load_1m", "jvm.system.cpu.load_1m", "{run_queue_item}"),
    same("process.runtime.jvm.buffer.usage", "jvm.buffer.memory.used", "By"),
    same("process.runtime.jvm.buffer.limit", "jvm.buffer.memory.limit", "By"),
    same("process.runtime.jvm.buffer.count", "jvm.buffer.count", "{buffer}"),
    same("jvm.buffer.memory.usage", "jvm.buffer.memory.used", "By"),
    same("nodejs.event_loop.utilization", "nodejs.eventloop.utilization", "1"),
];

/// A label of metrics that was renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelRenamed {
    /// Prefix of the metric's present name.
    pub of: &'static str,
    /// Name that older instrumentation sends.
    pub old: &'static str,
    /// Present name.
    pub new: &'static str,
}

const fn label(of: &'static str, old: &'static str, new: &'static str) -> LabelRenamed {
    LabelRenamed { of, old, new }
}

/// Labels of metrics, beyond those that are called as the attributes of spans are.
pub const LABELS_RENAMED: &[LabelRenamed] = &[
    label("db.client.connection.", "pool.name", "db.client.connection.pool.name"),
    label("db.client.connection.", "db.client.connections.pool.name", "db.client.connection.pool.name"),
    label("db.client.connection.", "pool", "db.client.connection.pool.name"),
    label("db.client.connection.", "state", "db.client.connection.state"),
    label("db.client.connection.", "db.client.connections.state", "db.client.connection.state"),
    label("jvm.memory.", "type", "jvm.memory.type"),
    label("jvm.memory.", "pool", "jvm.memory.pool.name"),
    label("jvm.gc.", "name", "jvm.gc.name"),
    label("jvm.gc.", "action", "jvm.gc.action"),
    label("jvm.buffer.", "pool", "jvm.buffer.pool.name"),
    label("jvm.thread.", "daemon", "jvm.thread.daemon"),
    label("jvm.thread.", "thread.daemon", "jvm.thread.daemon"),
    label("process.cpu.", "state", "cpu.mode"),
    label("process.cpu.", "process.cpu.state", "cpu.mode"),
    label("process.cpu.", "type", "cpu.mode"),
];
