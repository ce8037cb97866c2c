//! Reports of pools of connections: spans for connections that are taken, and metrics of their state.
//!
//! Nothing is judged here. Connections that are really opened (`tcp.connect`, `pg.connect`) are not taken from a pool.

use std::ops::Range;

use narrows_model::evidence::TrialEvidence;
use narrows_model::series::{Point, Series};
use narrows_model::trace::Span;

use crate::read::requests::is_database;

/// Endings of the names of spans that take a connection from a pool.
const ENDINGS: [&str; 8] = [
    "pool.connect",
    "pool.acquire",
    "pool.getconnection",
    "pool.get_connection",
    "datasource.getconnection",
    "pool.checkout",
    "acquire connection",
    "pool.wait",
];

const PREFIXES: [&str; 2] = ["db.client.connection", "http.client.connection"];
/// The time that a request waits for a connection, of the HTTP client of .NET.
const HTTP_WAIT: &str = "http.client.request.time_in_queue";
const STATE: &str = "db.client.connection.state";

/// True if a span stands for a connection that was taken from a pool. SQLAlchemy calls it `connect`, without a query.
pub(crate) fn is_taking(span: &Span) -> bool {
    let name = span.name.to_ascii_lowercase();
    span.facts.db_query.is_none() && (is_plain_connect(span) || ENDINGS.iter().any(|ending| name.ends_with(ending)))
}

/// True if its name could as well mean that the connection is opened.
pub(crate) fn is_plain_connect(span: &Span) -> bool {
    span.name.eq_ignore_ascii_case("connect") && is_database(span) && span.facts.db_query.is_none()
}

/// Metrics of the pools of one service over some time; pools of one service are taken together.
#[derive(Debug, Default)]
pub(crate) struct PoolMetrics {
    /// Share of the readings with a task waiting for a connection.
    pub(crate) pending: Option<Readings>,
    /// Share of the readings with all connections in use.
    pub(crate) full: Option<Readings>,
    /// The largest number of connections.
    pub(crate) max: Option<f64>,
    /// Mean wait for a connection, nanoseconds.
    pub(crate) wait_ns: Option<f64>,
    /// Mean time that a connection is held, nanoseconds.
    pub(crate) use_ns: Option<f64>,
    /// Connections taken.
    pub(crate) takings: Option<f64>,
}

/// First instant, and first instant after.
pub(crate) type Within = Range<i64>;

/// Readings of a state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Readings {
    pub(crate) count: usize,
    pub(crate) share: f64,
}

impl Readings {
    fn new<'a>(within: &Within, points: impl Iterator<Item = &'a Point>, shows: impl Fn(f64) -> bool) -> Option<Self> {
        let (mut count, mut shown) = (0, 0);
        for point in points.filter(|point| within.contains(&point.time_ns)) {
            count += 1;
            shown += usize::from(shows(point.value));
        }
        (count > 0).then(|| Self { count, share: shown as f64 / count as f64 })
    }

    fn worse(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        [a, b].into_iter().flatten().max_by(|a, b| a.share.total_cmp(&b.share))
    }
}

impl PoolMetrics {
    /// Of one service, between two instants.
    pub(crate) fn new(trial: &TrialEvidence, service: &str, within: &Within) -> Self {
        let mut metrics = Self::default();
        for series in trial.series.iter().filter(|series| series.key.service == service) {
            let name = series.key.name.as_str();
            match PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)) {
                Some(".pending_requests") => {
                    let readings = Readings::new(within, series.points.iter(), |value| value >= 1.0);
                    metrics.pending = Readings::worse(metrics.pending, readings);
                }
                Some(".count") if series.key.labels.get(STATE).is_some_and(|state| state == "used") => {
                    metrics.add_used(trial, series, within);
                }
                _ => {}
            }
        }
        let of = |names: &[&str]| names.iter().find_map(|name| mean_of(trial, service, name, within));
        let waits = of(&["db.client.connection.wait_time", HTTP_WAIT]);
        metrics.wait_ns = waits.map(|(seconds, _)| seconds * 1e9);
        metrics.takings = waits.map(|(_, count)| count);
        metrics.use_ns = of(&["db.client.connection.use_time"]).map(|(seconds, _)| seconds * 1e9);
        metrics
    }

    fn add_used(&mut self, trial: &TrialEvidence, used: &Series, within: &Within) {
        let is_same_pool = |other: &&Series| {
            let labels = |series: &Series| {
                series
                    .key
                    .labels
                    .iter()
                    .filter(|(label, _)| label.as_str() != STATE)
                    .map(|(l, v)| (l.clone(), v.clone()))
                    .collect::<Vec<_>>()
            };
            let name = other.key.name == used.key.name.replace(".count", ".max");
            name && (&other.key.service, other.key.replica) == (&used.key.service, used.key.replica)
                && labels(other).iter().all(|label| label.0.starts_with("narrows.") || labels(used).contains(label))
        };
        let max =
            trial.series.iter().find(is_same_pool).and_then(|series| series.points.last()).map(|point| point.value);
        let Some(max) = max.filter(|max| *max > 0.0) else { return };
        self.max = self.max.map_or(Some(max), |known| Some(known.max(max)));
        self.full = Readings::worse(self.full, Readings::new(within, used.points.iter(), |value| value >= max));
    }

    /// Whether readings say that requests wait: somebody does or, where that is not reported, all connections are in use.
    pub(crate) fn crowded(&self, readings_min: usize, share_min: f64) -> Option<Readings> {
        let readings = self.pending.or(self.full)?;
        (readings.count >= readings_min && readings.share >= share_min).then_some(readings)
    }
}

/// The mean and the number of a distribution's values in that time, all series of that name together.
pub(crate) fn mean_of(trial: &TrialEvidence, service: &str, name: &str, within: &Within) -> Option<(f64, f64)> {
    let series = |part: &str| -> Vec<&Series> {
        let name = format!("{name}{part}");
        trial.series.iter().filter(|series| series.key.service == service && series.key.name == name).collect()
    };
    let (sums, counts) = (series(".sum"), series(".count"));
    // A steady flow of new values may happen never to fall; that the other series falls shows it.
    let is_cumulative = sums.iter().chain(&counts).all(|series| never_falls(series));
    let grown = |all: &[&Series]| all.iter().map(|series| increase(within, series, is_cumulative)).sum::<f64>();
    let (sum, count) = (grown(&sums), grown(&counts));
    (count > 0.0 && sum >= 0.0).then(|| (sum / count, count))
}

fn never_falls(series: &Series) -> bool {
    series.points.len() > 1 && series.points.windows(2).all(|pair| pair[0].value <= pair[1].value)
}

/// Increase of a series in that time. Cumulative series never fall; others report each increment.
fn increase(within: &Within, series: &Series, is_cumulative: bool) -> f64 {
    let points = &series.points;
    if is_cumulative {
        let pairs = points.windows(2).filter(|pair| within.contains(&pair[1].time_ns));
        return pairs.map(|pair| pair[1].value - pair[0].value).sum();
    }
    points.iter().filter(|point| within.contains(&point.time_ns)).map(|point| point.value).sum()
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{client, database, internal, query};
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    const ALL: Within = i64::MIN..i64::MAX;

    fn trial() -> TrialBuilder {
        TrialBuilder::new("a").steady(10, Load { vus: 1, rate: 1.0, latency_ms: 1.0 })
    }

    #[test]
    fn takings_are_reported_from_openings() {
        let is = |span: narrows_testkit::spans::SpanBuilder| is_taking(&span.trace(1).spans[0]);
        assert!(is(internal("pg-pool.connect")) && is(database("connect")) && is(internal("DataSource.getConnection")));
        assert!(!is(client("tcp.connect")) && !is(internal("connect")) && !is(query("SELECT 1")));
    }

    #[test]
    fn means_hold_for_counters_of_both_kinds() {
        for growing in [true, false] {
            let value = move |mean: f64| {
                move |s: u32| {
                    let of = |s: u32| if s.is_multiple_of(2) { 10.0 } else { 20.0 };
                    mean * if growing { (0..=s).map(of).sum::<f64>() } else { of(s) }
                }
            };
            let trial = trial().series("db.client.connection.wait_time.sum", "shop", 0, value(0.2)).series(
                "db.client.connection.wait_time.count",
                "shop",
                0,
                value(1.0),
            );
            let metrics = PoolMetrics::new(&trial.build(), "shop", &ALL);
            assert!((metrics.wait_ns.unwrap() - 0.2e9).abs() < 1.0, "{metrics:?}");
        }
    }

    #[test]
    fn readings_tell_how_often_somebody_waits() {
        let pending = |s: u32| if s >= 4 { 3.0 } else { 0.0 };
        let metrics = PoolMetrics::new(
            &trial().series("db.client.connection.pending_requests", "shop", 0, pending).build(),
            "shop",
            &ALL,
        );
        assert_eq!(metrics.crowded(5, 0.25).map(|readings| (readings.count, readings.share)), Some((10, 0.6)));
        assert_eq!(metrics.crowded(11, 0.25), None);
        assert_eq!(metrics.crowded(5, 0.7), None);
        assert_eq!(PoolMetrics::new(&trial().build(), "shop", &ALL).crowded(0, 0.0), None);
    }

    #[test]
    fn a_pool_is_full_when_all_it_may_have_are_used() {
        let mut evidence = trial()
            .series("db.client.connection.count", "shop", 0, |s| if s < 5 { 10.0 } else { 9.0 })
            .series("db.client.connection.max", "shop", 0, |_| 10.0)
            .build();
        evidence.series[0].key.labels.insert(STATE.into(), "used".into());
        let metrics = PoolMetrics::new(&evidence, "shop", &ALL);
        assert_eq!((metrics.max, metrics.full.map(|readings| readings.share)), (Some(10.0), Some(0.5)));
    }

    #[test]
    fn new_values_that_happen_never_to_fall_are_not_taken_for_a_sum() {
        let name = |part: &str| format!("db.client.connection.wait_time{part}");
        let sums = |s: u32| if s.is_multiple_of(2) { 1.9 } else { 2.1 };
        let counts = |s: u32| if s < 9 { 10.0 } else { 11.0 };
        let trial = trial().series(&name(".sum"), "shop", 0, sums).series(&name(".count"), "shop", 0, counts);
        let wait_ns = PoolMetrics::new(&trial.build(), "shop", &ALL).wait_ns.unwrap();
        assert!((wait_ns - 20.0 / 101.0 * 1e9).abs() < 1.0, "{wait_ns}");
    }
}
