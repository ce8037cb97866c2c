//! Series of a page under the names that they have by OTLP.
//!
//! Two kinds are known: what client libraries of Prometheus call their own figures ([`EXPORTED`]), and any metric of
//! [`METRICS_RENAMED`] as OpenTelemetry's rule for Prometheus writes it: dots as underscores, then the unit, then
//! `_total` for a counter. A renamed series keeps its old name as [`ORIGINAL_NAME`], like any other. What is not known
//! stays as it came: an underscore does not show whether it was a dot.
//!
//! Source: the default collectors of client_golang, client_python, client_java and prom-client; Micrometer's names for
//! HikariCP; "Prometheus and OpenMetrics compatibility" of the OpenTelemetry specification.

use std::collections::HashMap;
use std::sync::LazyLock;

use narrows_model::series::SeriesKey;

use crate::normalise::{LABELS_RENAMED, METRICS_RENAMED, ORIGINAL_NAME, RENAMED, normalise_series};

/// A series as a client library of Prometheus calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PrometheusName {
    /// The name on the page; of a distribution without `_count`, `_sum` and `_max`.
    pub(super) scraped: &'static str,
    /// Name in OTLP.
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    /// A label, and its value, that the scraped name says.
    label: Option<(&'static str, &'static str)>,
}

const fn row(scraped: &'static str, name: &'static str, unit: &'static str) -> PrometheusName {
    PrometheusName { scraped, name, unit, label: None }
}

const fn connections(scraped: &'static str, state: &'static str) -> PrometheusName {
    let label = Some(("db.client.connection.state", state));
    PrometheusName { scraped, name: "db.client.connection.count", unit: "{connection}", label }
}

/// Each scraped name once.
pub(super) const EXPORTED: &[PrometheusName] = &[
    row("process_cpu_seconds_total", "process.cpu.time", "s"),
    row("process_resident_memory_bytes", "process.memory.usage", "By"),
    row("process_virtual_memory_bytes", "process.memory.virtual", "By"),
    row("process_open_fds", "process.unix.file_descriptor.count", "{file_descriptor}"),
    row("process_num_threads", "process.thread.count", "{thread}"),
    connections("hikaricp_connections_active", "used"),
    connections("hikaricp_connections_idle", "idle"),
    row("hikaricp_connections_max", "db.client.connection.max", "{connection}"),
    row("hikaricp_connections_min", "db.client.connection.idle.min", "{connection}"),
    row("hikaricp_connections_pending", "db.client.connection.pending_requests", "{request}"),
    row("hikaricp_connections_timeout_total", "db.client.connection.timeouts", "{timeout}"),
    row("hikaricp_connections_acquire_seconds", "db.client.connection.wait_time", "s"),
    row("hikaricp_connections_usage_seconds", "db.client.connection.use_time", "s"),
    row("hikaricp_connections_creation_seconds", "db.client.connection.create_time", "s"),
    connections("go_sql_in_use_connections", "used"),
    connections("go_sql_idle_connections", "idle"),
    row("go_sql_max_open_connections", "db.client.connection.max", "{connection}"),
    row("go_sql_wait_count_total", "db.client.connection.wait_time.count", ""),
    row("go_sql_wait_duration_seconds_total", "db.client.connection.wait_time.sum", "s"),
];

/// The label that says which pool, per prefix of the scraped name.
const POOL_LABELS: [(&str, &str); 2] = [("hikaricp_", "pool"), ("go_sql_", "db_name")];
const POOL: &str = "db.client.connection.pool.name";

/// Parts of a distribution, as pages and as OTLP's series end.
const PARTS: [(&str, &str); 4] = [("_count", ".count"), ("_sum", ".sum"), ("_max", ".max"), ("_min", ".min")];

/// Metrics of OTLP as pages write them, with what they are.
static WRITTEN_OUT: LazyLock<HashMap<String, (&'static str, &'static str)>> = LazyLock::new(|| {
    let mut all = HashMap::new();
    let olds = METRICS_RENAMED.iter().map(|renamed| (renamed.old, renamed.old_unit));
    for (name, unit) in olds.chain(METRICS_RENAMED.iter().map(|renamed| (renamed.new, renamed.new_unit))) {
        let plain = name.replace('.', "_");
        let word = match unit {
            "s" => "_seconds",
            "ms" => "_milliseconds",
            "By" => "_bytes",
            "1" => "_ratio",
            _ => "",
        };
        for written in [format!("{plain}{word}_total"), format!("{plain}{word}"), format!("{plain}_total"), plain] {
            all.insert(written, (name, unit));
        }
    }
    all
});

/// Gives a scraped series the name, unit and labels that it has by OTLP, if it is known, and its value with them.
pub(crate) fn as_by_otlp(key: &mut SeriesKey, value: f64) -> f64 {
    let scraped = key.name.clone();
    let Some(known) = known(&scraped) else { return value };
    if let Some((_, pool)) = POOL_LABELS.iter().find(|(prefix, _)| scraped.starts_with(prefix))
        && let Some(name) = key.labels.remove(*pool)
    {
        key.labels.insert(POOL.to_owned(), name);
    }
    key.labels = std::mem::take(&mut key.labels).into_iter().map(|(label, text)| (dotted(&label), text)).collect();
    if let Some((label, text)) = known.label {
        key.labels.insert(label.to_owned(), text.to_owned());
    }
    key.name = format!("{}{}", known.name, known.part.1);
    if known.part.1 == ".count" {
        key.unit.clear();
    } else if key.unit.is_empty() {
        known.unit.clone_into(&mut key.unit);
    }
    let value = normalise_series(key, value);
    let whole = scraped.strip_suffix(known.part.0).unwrap_or(&scraped);
    key.labels.insert(ORIGINAL_NAME.to_owned(), whole.to_owned());
    value
}

/// Meaning of a scraped name.
struct Mapping {
    name: &'static str,
    unit: &'static str,
    label: Option<(&'static str, &'static str)>,
    /// Of a distribution: how the name ends on the page, and by OTLP.
    part: (&'static str, &'static str),
}

fn known(scraped: &str) -> Option<Mapping> {
    let whole = |name: &str, part| {
        if let Some(row) = EXPORTED.iter().find(|row| row.scraped == name) {
            return Some(Mapping { name: row.name, unit: row.unit, label: row.label, part });
        }
        WRITTEN_OUT.get(name).map(|(name, unit)| Mapping { name, unit, label: None, part })
    };
    whole(scraped, ("", "")).or_else(|| PARTS.iter().find_map(|part| whole(scraped.strip_suffix(part.0)?, *part)))
}

/// A label as OTLP calls it, if it is one that this crate knows.
fn dotted(label: &str) -> String {
    let of_metrics = LABELS_RENAMED.iter().flat_map(|renamed| [renamed.new, renamed.old]);
    let mut known = of_metrics.chain(RENAMED.iter().flat_map(|renamed| [renamed.new, renamed.old]));
    let is_written_so = |name: &&str| name.len() == label.len() && name.replace('.', "_") == label;
    known.find(is_written_so).unwrap_or(label).to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn renamed(name: &str, unit: &str, labels: &[(&str, &str)], value: f64) -> (String, String, Vec<String>, f64) {
        let labels: BTreeMap<String, String> =
            labels.iter().map(|(label, text)| ((*label).to_owned(), (*text).to_owned())).collect();
        let mut key = SeriesKey { name: name.into(), unit: unit.into(), service: "web".into(), replica: 0, labels };
        let value = as_by_otlp(&mut key, value);
        let labels = key.labels.iter().map(|(label, text)| format!("{label}={text}")).collect();
        (key.name, key.unit, labels, value)
    }

    #[test]
    fn each_row_leads_to_its_name() {
        for (at, row) in EXPORTED.iter().enumerate() {
            assert!(EXPORTED[..at].iter().all(|other| other.scraped != row.scraped), "{} twice", row.scraped);
            let (name, unit, labels, value) = renamed(row.scraped, "", &[], 2.0);
            assert_eq!((name.as_str(), unit.as_str(), value), (row.name, row.unit, 2.0), "{}", row.scraped);
            assert!(labels.contains(&format!("{ORIGINAL_NAME}={}", row.scraped)), "{labels:?}");
        }
    }

    #[test]
    fn pools_are_found_by_one_name_whatever_counts_them() {
        let used = |original: &str| {
            let labels = [POOL, "db.client.connection.state", ORIGINAL_NAME];
            let values = ["main", "used", original];
            labels.iter().zip(values).map(|(label, text)| format!("{label}={text}")).collect::<Vec<_>>()
        };
        let cases: [(&str, &[(&str, &str)]); 4] = [
            ("hikaricp_connections_active", &[("pool", "main")]),
            ("go_sql_in_use_connections", &[("db_name", "main")]),
            (
                "db_client_connection_count",
                &[("db_client_connection_pool_name", "main"), ("db_client_connection_state", "used")],
            ),
            ("db_client_connections_usage", &[("pool_name", "main"), ("state", "used")]),
        ];
        for (scraped, labels) in cases {
            let (name, unit, labels, _) = renamed(scraped, "", labels, 3.0);
            assert_eq!((name.as_str(), unit.as_str()), ("db.client.connection.count", "{connection}"), "{scraped}");
            assert_eq!(labels, used(scraped));
        }
    }

    #[test]
    fn distributions_and_units_are_converted() {
        let cases = [
            ("hikaricp_connections_acquire_seconds_sum", "s", "db.client.connection.wait_time.sum", "s", 5.0),
            ("hikaricp_connections_acquire_seconds_count", "", "db.client.connection.wait_time.count", "", 5.0),
            ("http_server_request_duration_seconds_sum", "s", "http.server.request.duration.sum", "s", 5.0),
            ("http_server_duration_milliseconds_sum", "ms", "http.server.request.duration.sum", "s", 0.005),
            ("process_runtime_jvm_memory_usage_bytes", "By", "jvm.memory.used", "By", 5.0),
        ];
        for (scraped, unit, name, now, value) in cases {
            let got = renamed(scraped, unit, &[], 5.0);
            assert_eq!((got.0.as_str(), got.1.as_str(), got.3), (name, now, value), "{scraped}");
        }
    }

    #[test]
    fn what_is_not_known_stays_as_it_came() {
        for scraped in ["queue_length", "process_cpu_seconds", "go_goroutines", "acme_count", "_sum"] {
            let got = renamed(scraped, "u", &[("pool", "main")], 1.5);
            assert_eq!(got, (scraped.to_owned(), "u".to_owned(), vec!["pool=main".to_owned()], 1.5));
        }
    }

    #[test]
    fn the_page_lists_every_row() {
        const PAGE: &str = include_str!("../../../../docs/reference/conventions.md");
        for row in EXPORTED {
            let line = PAGE.lines().find(|line| line.contains(&format!("`{}`", row.scraped)));
            assert!(line.is_some_and(|line| line.contains(&format!("`{}`", row.name))), "{}", row.scraped);
        }
    }
}
