//! Name of a metric, whichever generation of conventions it follows, so that one series is found by one name.
//!
//! A point whose metric has an older name is kept under the name, the unit and the labels of today, its value
//! converted. A renamed series keeps the old name as the label [`ORIGINAL_NAME`]: a process that sends both names
//! (`…/dup` while it migrates, an agent beside Micrometer) has two series then, told apart by that label, instead of
//! one in which both are mixed; whoever adds up takes those without it first. Only times change their unit, and a
//! metric that is new in name but comes in another unit of time (Micrometer sends milliseconds) is converted too. A
//! unit that cannot be converted leaves the series as it came: a wrong scale is worse than an old name.
//!
//! It does not compute anything from several points: cumulative stays cumulative.

use std::collections::HashMap;
use std::sync::LazyLock;

use narrows_model::series::SeriesKey;

use super::names::RENAMED;
use super::series_names::{LABELS_RENAMED, METRICS_RENAMED, MetricRenamed, ORIGINAL_NAME};

/// Stored forms of histograms and summaries, beside their name.
const PARTS: [&str; 4] = [".count", ".sum", ".min", ".max"];

/// Present name of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesName<'a> {
    /// The name.
    pub name: &'a str,
    /// The unit, UCUM.
    pub unit: &'a str,
    /// Factor for a value in the unit it came with.
    pub factor: f64,
    /// A label that the old name said and the new one does not.
    pub label: Option<(&'static str, &'static str)>,
}

static OLD: LazyLock<HashMap<&'static str, &'static MetricRenamed>> =
    LazyLock::new(|| METRICS_RENAMED.iter().map(|renamed| (renamed.old, renamed)).collect());

/// Today's metrics that are times, whose unit is the second.
static TIMES: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let times = METRICS_RENAMED.iter().filter(|renamed| renamed.new_unit == "s");
    times.map(|renamed| (renamed.new, renamed.new_unit)).collect()
});

/// Name, unit and factor of a metric that came as `name` in `unit`; an empty unit stands for the one that the metric
/// has by its convention. What is not known, or cannot be converted, is given back as it came.
pub fn series_name<'a>(name: &'a str, unit: &'a str) -> SeriesName<'a> {
    let as_it_came = SeriesName { name, unit, factor: 1.0, label: None };
    if let Some(renamed) = OLD.get(name) {
        let came_in = if unit.is_empty() { renamed.old_unit } else { unit };
        return match factor(came_in, renamed.new_unit) {
            Some(factor) => SeriesName { name: renamed.new, unit: renamed.new_unit, factor, label: renamed.label },
            None => as_it_came,
        };
    }
    match TIMES.get(name).and_then(|stable| Some((*stable, factor(unit, stable)?))) {
        Some((unit, factor)) => SeriesName { unit, factor, ..as_it_came },
        None => as_it_came,
    }
}

/// A series as it is called now, with what its values are multiplied by. `key` is that of a point as it came; the name
/// of a part of a distribution ends in `.count`, `.sum`, `.min` or `.max`, and a count has no unit.
pub fn normalise_series(key: &mut SeriesKey, value: f64) -> f64 {
    let Some((whole, part)) = known(&key.name) else { return value };
    let is_count = part == ".count";
    let now = series_name(whole, if is_count { "" } else { &key.unit });
    if now.name == whole && now.unit == key.unit {
        if !OLD.contains_key(whole) {
            rename_labels(key);
        }
        return value;
    }
    let factor = if is_count { 1.0 } else { now.factor };
    let unit = if is_count { String::new() } else { now.unit.to_owned() };
    let (label, name) = (now.label, format!("{}{part}", now.name));
    if now.name != whole {
        key.labels.insert(ORIGINAL_NAME.to_owned(), whole.to_owned());
    }
    if let Some((label, text)) = label {
        key.labels.insert(label.to_owned(), text.to_owned());
    }
    (key.name, key.unit) = (name, unit);
    rename_labels(key);
    value * factor
}

/// A metric that this module knows, by its old name or its new one, and the part of a distribution.
fn known(name: &str) -> Option<(&str, &'static str)> {
    static NEW: LazyLock<HashMap<&'static str, ()>> =
        LazyLock::new(|| METRICS_RENAMED.iter().map(|renamed| (renamed.new, ())).collect());
    let is_known = |name: &str| OLD.contains_key(name) || NEW.contains_key(name);
    if is_known(name) {
        return Some((name, ""));
    }
    PARTS.iter().find_map(|part| Some((name.strip_suffix(part).filter(|whole| is_known(whole))?, *part)))
}

/// Gives labels the names they have now, unless a label has that name already.
fn rename_labels(key: &mut SeriesKey) {
    let of_metric = LABELS_RENAMED.iter().filter(|renamed| key.name.starts_with(renamed.of));
    let of_metric = of_metric.map(|renamed| (renamed.old, renamed.new));
    let of_spans = RENAMED.iter().map(|renamed| (renamed.old, renamed.new));
    for (old, new) in of_metric.chain(of_spans).collect::<Vec<_>>() {
        if !key.labels.contains_key(new)
            && let Some(value) = key.labels.remove(old)
        {
            key.labels.insert(new.to_owned(), value);
        }
    }
}

/// Factor from a value in one unit to one in the other; `None` if they do not measure the same. Counts are
/// alike however they are annotated: `1`, `{connection}`, `connections` and nothing.
fn factor(from: &str, to: &str) -> Option<f64> {
    match (seconds(from), seconds(to)) {
        (Some(from), Some(to)) => Some(from / to),
        (None, None) if (is_bytes(from), is_bytes(to)) == (true, true) => Some(1.0),
        (None, None) if !is_bytes(from) && !is_bytes(to) => Some(1.0),
        _ => None,
    }
}

fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" | "seconds" | "second" => 1.0,
        "ms" | "milliseconds" | "millisecond" => 1e-3,
        "us" | "µs" | "microseconds" => 1e-6,
        "ns" | "nanoseconds" => 1e-9,
        _ => return None,
    })
}

fn is_bytes(unit: &str) -> bool {
    matches!(unit, "By" | "bytes" | "byte" | "B")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn key(name: &str, unit: &str, labels: &[(&str, &str)]) -> SeriesKey {
        let labels: BTreeMap<String, String> =
            labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
        SeriesKey { name: name.into(), unit: unit.into(), service: "shop".into(), replica: 2, labels }
    }

    fn normalised(name: &str, unit: &str, labels: &[(&str, &str)], value: f64) -> (SeriesKey, f64) {
        let mut key = key(name, unit, labels);
        let value = normalise_series(&mut key, value);
        (key, value)
    }

    #[test]
    fn each_row_leads_to_its_new_name_and_unit() {
        for row in METRICS_RENAMED {
            let expected = if row.old_unit == row.new_unit || row.old_unit.is_empty() { 1.0 } else { 1e-3 };
            for unit in [row.old_unit, ""] {
                let got = series_name(row.old, unit);
                assert_eq!((got.name, got.unit, got.factor), (row.new, row.new_unit, expected), "{} {unit}", row.old);
            }
            let now = series_name(row.new, row.new_unit);
            assert_eq!((now.name, now.unit, now.factor, now.label), (row.new, row.new_unit, 1.0, None), "{}", row.new);
        }
    }

    #[test]
    fn tables_are_consistent() {
        let old: BTreeSet<&str> = METRICS_RENAMED.iter().map(|row| row.old).collect();
        assert_eq!(old.len(), METRICS_RENAMED.len(), "each old name once");
        assert!(METRICS_RENAMED.iter().all(|row| !old.contains(row.new)), "a new name is also an old one");
        for row in LABELS_RENAMED {
            assert!(METRICS_RENAMED.iter().any(|metric| metric.new.starts_with(row.of)), "{} is of no metric", row.of);
            let metric = METRICS_RENAMED.iter().find(|metric| metric.new.starts_with(row.of)).unwrap();
            let (got, _) = normalised(metric.new, metric.new_unit, &[(row.old, "x")], 1.0);
            assert_eq!(got, key(metric.new, metric.new_unit, &[(row.new, "x")]), "{}", row.old);
        }
    }

    #[test]
    fn the_page_lists_every_row() {
        const PAGE: &str = include_str!("../../../../docs/reference/conventions.md");
        let spans = RENAMED.iter().map(|row| (row.old, row.new));
        let metrics = METRICS_RENAMED.iter().map(|row| (row.old, row.new));
        let labels = LABELS_RENAMED.iter().map(|row| (row.old, row.new));
        for (old, new) in spans.chain(metrics).chain(labels) {
            let is_row = |line: &str| line.contains(&format!("`{old}`")) && line.contains(&format!("`{new}`"));
            assert!(PAGE.lines().any(is_row), "no row says that {old} is {new}");
        }
    }

    #[test]
    fn a_pool_of_java_by_the_old_names() {
        let labels = [("pool.name", "HikariPool-1"), ("state", "used")];
        let (got, value) = normalised("db.client.connections.usage", "{connections}", &labels, 7.0);
        let expected = [
            ("db.client.connection.pool.name", "HikariPool-1"),
            ("db.client.connection.state", "used"),
            (ORIGINAL_NAME, "db.client.connections.usage"),
        ];
        assert_eq!((got, value), (key("db.client.connection.count", "{connection}", &expected), 7.0));
        let (got, value) = normalised("db.client.connections.wait_time.sum", "ms", &[], 1500.0);
        assert_eq!((got.name.as_str(), got.unit.as_str(), value), ("db.client.connection.wait_time.sum", "s", 1.5));
        let (got, value) = normalised("db.client.connections.wait_time.count", "", &[], 12.0);
        assert_eq!((got.name.as_str(), got.unit.as_str(), value), ("db.client.connection.wait_time.count", "", 12.0));
        assert_eq!(got.labels[ORIGINAL_NAME], "db.client.connections.wait_time");
        assert_eq!(got.replica, 2);
    }

    #[test]
    fn a_pool_by_micrometer() {
        let (got, value) = normalised("hikaricp.connections.active", "connections", &[("pool", "main")], 3.0);
        let expected = [
            ("db.client.connection.pool.name", "main"),
            ("db.client.connection.state", "used"),
            (ORIGINAL_NAME, "hikaricp.connections.active"),
        ];
        assert_eq!((got, value), (key("db.client.connection.count", "{connection}", &expected), 3.0));
        let (got, value) = normalised("hikaricp.connections.acquire.max", "milliseconds", &[("pool", "main")], 40.0);
        assert_eq!((got.name.as_str(), got.unit.as_str(), value), ("db.client.connection.wait_time.max", "s", 0.04));
        let (got, _) = normalised("hikaricp.connections.max", "", &[], 10.0);
        assert_eq!(got.name, "db.client.connection.max");
    }

    #[test]
    fn what_is_new_stays_and_only_another_unit_of_time_is_converted() {
        let cases = [
            ("http.server.request.duration.sum", "s", 0.25, "s", 0.25),
            ("http.server.request.duration.sum", "ms", 250.0, "s", 0.25),
            ("http.server.request.duration.count", "", 9.0, "", 9.0),
            ("db.client.connection.max", "{connection}", 9.0, "{connection}", 9.0),
            ("orders.placed", "1", 4.0, "1", 4.0),
            ("process.cpu.time", "s", 4.0, "s", 4.0),
        ];
        for (name, unit, value, expected_unit, expected) in cases {
            let (got, value) = normalised(name, unit, &[("a", "b")], value);
            assert_eq!((got, value), (key(name, expected_unit, &[("a", "b")]), expected), "{name} in {unit}");
        }
    }

    #[test]
    fn a_unit_that_cannot_be_converted_leaves_the_series_as_it_came() {
        for (name, unit) in
            [("http.server.duration", "By"), ("http.server.duration.sum", "1"), ("jvm.memory.usage", "s")]
        {
            let (got, value) = normalised(name, unit, &[], 5.0);
            assert_eq!((got, value), (key(name, unit, &[]), 5.0));
        }
    }

    #[test]
    fn a_label_that_has_its_new_name_is_not_overwritten() {
        let labels = [("http.method", "POST"), ("http.request.method", "GET"), ("http.status_code", "200")];
        let (got, _) = normalised("http.server.duration.sum", "ms", &labels, 1.0);
        let expected = [
            ("http.method", "POST"),
            ("http.request.method", "GET"),
            ("http.response.status_code", "200"),
            (ORIGINAL_NAME, "http.server.duration"),
        ];
        assert_eq!(got, key("http.server.request.duration.sum", "s", &expected));
    }
}
