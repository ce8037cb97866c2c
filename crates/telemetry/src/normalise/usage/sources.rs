//! Metrics that say what a replica uses and may use, those that are preferred first.
//!
//! A pod counts before its containers, which may report less than all of them, and a container before the process, which
//! does not know of its children. `container.cpu.utilization` is left out: the receivers of Docker and of the kubelet mean
//! different things by it.
//!
//! Source: OpenTelemetry's semantic conventions 1.41 for processes, containers, Kubernetes and the JVM; the Collector's
//! `kubeletstats`, `k8s_cluster` and `docker_stats` receivers for what they call otherwise; the pages of cAdvisor and of the kubelet, whose names have underscores.

use narrows_model::series::SeriesKey;

/// How values follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The sum since the start.
    Counter,
    /// The value at the time.
    Gauge,
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Factor of values.
    pub(super) factor: f64,
}

impl Source {
    /// Whether a series is of this metric. What the sampler calls alike is a rate.
    pub(super) fn is_of(&self, key: &SeriesKey) -> bool {
        key.name == self.name && !key.unit.ends_with("/s")
    }
}

const fn gauge(name: &'static str) -> Source {
    Source { name, kind: Kind::Gauge, factor: 1.0 }
}

const fn counter(name: &'static str, factor: f64) -> Source {
    Source { name, kind: Kind::Counter, factor }
}

const NANOSECOND: f64 = 1e-9;
/// Cores for each microsecond of a quota, whose period is 100 ms in Docker and Kubernetes.
const PER_PERIOD: f64 = 1e-5;

/// CPU in use, in cores.
pub(super) const CPU: &[Source] = &[
    gauge("k8s.pod.cpu.usage"),
    counter("k8s.pod.cpu.time", 1.0),
    counter("pod_cpu_usage_seconds_total", 1.0),
    gauge("container.cpu.usage"),
    counter("container.cpu.time", 1.0),
    counter("container.cpu.usage.total", NANOSECOND),
    counter("container_cpu_usage_seconds_total", 1.0),
    counter("process.cpu.time", 1.0),
    counter("jvm.cpu.time", 1.0),
];

/// Memory in use, in bytes.
pub(super) const MEMORY: &[Source] = &[
    gauge("k8s.pod.memory.working_set"),
    gauge("k8s.pod.memory.rss"),
    gauge("pod_memory_working_set_bytes"),
    gauge("container.memory.working_set"),
    gauge("container.memory.rss"),
    gauge("container.memory.usage.total"),
    gauge("container.memory.usage"),
    gauge("container_memory_working_set_bytes"),
    gauge("process.memory.usage"),
    gauge("process.memory.physical_usage"),
];

/// CPU that may be used, in cores.
pub(super) const CPU_LIMIT: &[Source] = &[
    gauge("k8s.pod.cpu.limit"),
    gauge("k8s.container.cpu.limit"),
    gauge("k8s.container.cpu_limit"),
    gauge("container.cpu.limit"),
    Source { name: "container_spec_cpu_quota", kind: Kind::Gauge, factor: PER_PERIOD },
    gauge("cgroup.cpu.limit"),
];

/// Memory that may be used, in bytes.
pub(super) const MEMORY_LIMIT: &[Source] = &[
    gauge("k8s.pod.memory.limit"),
    gauge("k8s.container.memory.limit"),
    gauge("k8s.container.memory_limit"),
    gauge("container.memory.usage.limit"),
    gauge("container_spec_memory_limit_bytes"),
    gauge("cgroup.memory.limit"),
];

/// Periods of a CPU limit.
pub(super) const PERIODS: &[Source] =
    &[counter("container.cpu.throttling_data.periods", 1.0), counter("container_cpu_cfs_periods_total", 1.0)];
/// Those of them in which it was used up.
pub(super) const THROTTLED_PERIODS: &[Source] = &[
    counter("container.cpu.throttling_data.throttled_periods", 1.0),
    counter("container_cpu_cfs_throttled_periods_total", 1.0),
];
/// Seconds for which it was used up.
pub(super) const THROTTLED_TIME: &[Source] = &[
    counter("container.cpu.throttling_data.throttled_time", NANOSECOND),
    counter("container_cpu_cfs_throttled_seconds_total", 1.0),
];
