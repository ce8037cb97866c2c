//! Figures of a MariaDB or MySQL server: who is connected, what was done, who waited for whom. Sessions are sampled between
//! readings (`activity.rs`).
//!
//! Names are those of OpenTelemetry's `mysqlreceiver` where it has one, else `mysql.` and the status variable (MariaDB
//! documentation, *Server Status Variables* and *Galera Cluster Status Variables*). They say what the server sees, not
//! what a client's pool does. Counters count up from the server's start.

use std::collections::BTreeMap;

use crate::components::gauges::{Gauge, Gauges, TIMEOUT};
use crate::components::mariadb::activity::Activity;
use crate::components::mariadb::client::{Client, column, status_of};
use crate::components::sessions::SessionSamples;
use crate::experiment::ServerUrl;

/// Samples of the sessions between two readings. More would come within 0.1 s of each other, in which InnoDB keeps giving out
/// the copy of its transactions and locks that was read last.
const SAMPLES: u32 = 5;

/// A status variable, and what it is called here.
struct Metric {
    variable: &'static str,
    name: &'static str,
    unit: &'static str,
    label: Option<(&'static str, &'static str)>,
}

const fn metric(variable: &'static str, name: &'static str, unit: &'static str) -> Metric {
    Metric { variable, name, unit, label: None }
}

const fn kind(variable: &'static str, name: &'static str, unit: &'static str, kind: &'static str) -> Metric {
    Metric { variable, name, unit, label: Some(("kind", kind)) }
}

static METRICS: &[Metric] = &[
    kind("threads_connected", "mysql.threads", "{thread}", "connected"),
    kind("threads_running", "mysql.threads", "{thread}", "running"),
    metric("queries", "mysql.query.count", "{query}"),
    metric("slow_queries", "mysql.query.slow.count", "{query}"),
    kind("com_commit", "mysql.commands", "{command}", "commit"),
    kind("com_rollback", "mysql.commands", "{command}", "rollback"),
    metric("innodb_deadlocks", "mysql.innodb_deadlocks", "{deadlock}"),
    kind("innodb_row_lock_waits", "mysql.row_locks", "{wait}", "waits"),
    kind("innodb_row_lock_time", "mysql.row_locks", "ms", "time"),
    metric("innodb_row_lock_current_waits", "mysql.innodb_row_lock_current_waits", "{wait}"),
    metric("wsrep_cluster_conf_id", "mysql.wsrep_cluster_conf_id", "{change}"),
    metric("wsrep_cluster_size", "mysql.wsrep_cluster_size", "{node}"),
    metric("wsrep_local_state", "mysql.wsrep_local_state", "{state}"),
    metric("wsrep_flow_control_paused", "mysql.wsrep_flow_control_paused", "1"),
    metric("wsrep_local_bf_aborts", "mysql.wsrep_local_bf_aborts", "{transaction}"),
    metric("wsrep_local_cert_failures", "mysql.wsrep_local_cert_failures", "{transaction}"),
    metric("wsrep_local_commits", "mysql.wsrep_local_commits", "{transaction}"),
    metric("wsrep_replicated", "mysql.wsrep_replicated", "{writeset}"),
    metric("wsrep_received", "mysql.wsrep_received", "{writeset}"),
    metric("wsrep_local_recv_queue", "mysql.wsrep_local_recv_queue", "{writeset}"),
];

/// Asks one server over a connection of its own.
pub(in crate::components) struct Asker {
    client: Client,
    metrics: Vec<&'static Metric>,
    activity: Activity,
    samples: SessionSamples,
}

impl Asker {
    /// To a server. Variables that begin with one of `besides` are reported beside those of every server.
    pub(in crate::components) fn new(url: ServerUrl, besides: &[&str]) -> Self {
        let is_wanted = |metric: &&Metric| {
            !metric.variable.starts_with("wsrep_") || besides.iter().any(|begin| metric.variable.starts_with(begin))
        };
        Self {
            client: Client::new(url),
            metrics: METRICS.iter().filter(is_wanted).collect(),
            activity: Activity::default(),
            samples: SessionSamples::default(),
        }
    }
}

impl Gauges for Asker {
    fn samples(&self) -> u32 {
        SAMPLES
    }

    fn sample(&mut self) -> Result<(), String> {
        let sessions = self.activity.sessions(&mut self.client)?;
        self.samples.add(&sessions);
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<Gauge>, String> {
        let names: Vec<&str> = self.metrics.iter().map(|metric| metric.variable).collect();
        let rows = self.client.rows(&status_of(&names), TIMEOUT)?;
        let values: BTreeMap<String, String> =
            rows.iter().filter_map(|row| Some((column::<String>(row, 0)?.to_lowercase(), column(row, 1)?))).collect();
        let gauge = |metric: &&Metric| {
            let gauge = Gauge::new(metric.name, metric.unit, values.get(metric.variable)?.parse().ok()?);
            Some(metric.label.iter().fold(gauge, |gauge, (label, value)| gauge.with(label, value)))
        };
        let mut gauges: Vec<Gauge> = self.metrics.iter().filter_map(gauge).collect();
        gauges.extend(self.activity.statements(&mut self.client)?);
        gauges.extend(self.samples.gauges());
        Ok(gauges)
    }
}
