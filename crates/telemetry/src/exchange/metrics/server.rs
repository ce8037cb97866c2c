//! Range queries to a Prometheus server, or to another that speaks its HTTP API.
//!
//! The server lists its metrics; of those that are known, or mapped, it is asked for rates by service, callee and status,
//! so that its response is small whatever it stores. A step has several scrapes, as far as the time between scrapes can
//! be told, and 5 s at least.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use narrows_model::series::{Point, Series, SeriesKey};
use tokio::runtime::Builder;

use super::Mapping;
use super::matrix::{self, Labelled};
use crate::Store;
use crate::exchange::ImportError;
use crate::exchange::feed::{Feed, ImportCounts};
use crate::exchange::formats::Records;
use crate::http::{Authorization, Bounds, Client, NoResponse, Url};
use crate::normalise::{Requests, Role, SERVICE, STATUS, Source, service_of};
use crate::scrape::as_by_otlp;

/// The longest that a response may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The largest response, in bytes.
const RESPONSE_BYTES_MAX: usize = 64 << 20;
/// Points of one series in one response; Prometheus refuses more than 11,000.
const POINTS_AT_ONCE: i64 = 10_000;
/// Points of one series over the whole time; longer steps are taken beyond it.
const POINTS_MAX: i64 = 50_000;
/// Series of one metric; a metric with more of them is left out.
const SERIES_MAX: usize = 20_000;
/// Series of all metrics together.
const ALL_SERIES_MAX: usize = 100_000;
/// Names of metrics that are looked through.
const NAMES_MAX: usize = 1_000_000;
/// Steps, in seconds.
const STEP_S_MIN: i64 = 5;
const STEP_S_MAX: i64 = 300;
/// Scrapes in a step.
const SCRAPES: i64 = 4;
/// Time in which scrapes are counted, seconds.
const COUNTED_S: i64 = 120;
/// The usual time between scrapes, seconds, where it cannot be told.
const SCRAPE_S: i64 = 60;

/// A Prometheus server, and the time that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusQuery {
    /// The server; `/api/v1/…` is put behind its path.
    pub url: Url,
    /// Authorisation that the server wants; `None` if it wants none.
    pub authorization: Option<Authorization>,
    /// The first instant, nanoseconds since 1970.
    pub from_ns: i64,
    /// The first instant after.
    pub until_ns: i64,
}

/// Asks a server for what it knows of services and hands it to `store`. Blocks; not to be called on a runtime's thread.
///
/// # Errors
/// When the server does not respond as expected, knows no such metric or nothing of that time, or the store cannot be
/// written to.
pub fn import_prometheus(
    query: &PrometheusQuery,
    mapping: &Mapping,
    store: &dyn Store,
    imported: &mut ImportCounts,
) -> Result<(), ImportError> {
    let failed = |what: String, hint: &'static str| ImportError::Server { url: query.url.to_string(), what, hint };
    let runtime = Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| failed(error.to_string(), ""))?;
    let client = Client::new(query.url.clone(), Bounds { timeout: TIMEOUT, body_bytes_max: RESPONSE_BYTES_MAX });
    let client = client.with_authorization(query.authorization.clone());
    let mut server = Server { query, client, failed: &failed };
    let (series, left_out) = runtime.block_on(server.series(mapping))?;
    if series.iter().all(|series| series.points.is_empty()) {
        let what = "it has nothing of the known metrics at that time".to_owned();
        return Err(failed(what, "look at the times, which are in UTC, and at the server's retention"));
    }
    let mut feed = Feed::new(store, imported);
    let mut kept = Ok(());
    for Series { key, points } in series {
        let points = points.into_iter().map(|point| (key.clone(), point)).collect();
        kept = kept.and_then(|()| feed.take(Records { points, ..Records::default() }));
    }
    kept.and_then(|()| feed.finish()).map_err(|what| failed(what, ""))?;
    for name in left_out {
        imported.complain(1, || format!("{}: {name} has more than {SERIES_MAX} series and is left out", query.url));
    }
    Ok(())
}

struct Server<'q> {
    query: &'q PrometheusQuery,
    client: Client,
    failed: &'q dyn Fn(String, &'static str) -> ImportError,
}

impl Server<'_> {
    /// Figures of services, and the metrics that have too many series.
    async fn series(&mut self, mapping: &Mapping) -> Result<(Vec<Series>, Vec<String>), ImportError> {
        let sources = mapping.sources();
        let known = self.metrics(&sources, mapping).await?;
        if known.is_empty() {
            let what = "it has no metric of requests that is known".to_owned();
            return Err((self.failed)(what, "name its metrics in a table: --mapping FILE"));
        }
        let step_s = self.step_s().await?;
        let labels = labels(&sources);
        let mut requests = Requests::new(sources.clone());
        let (mut left_out, mut all) = (Vec::new(), 0);
        for name in known {
            let (of_otlp, _) = renamed(&name, mapping, BTreeMap::new());
            let is_gauge =
                sources.iter().any(|source| source.role == Role::Memory && source.part(&of_otlp.name).is_some());
            let of = if is_gauge { name.clone() } else { format!("rate({name}[{step_s}s])") };
            let series = self.range(&format!("sum by ({labels}) ({of})"), step_s).await?;
            all += series.len();
            if series.len() > SERIES_MAX || all > ALL_SERIES_MAX {
                left_out.push(name);
                continue;
            }
            for Labelled { labels, points } in series {
                let (key, factor) = renamed(&name, mapping, labels);
                let points = || points.iter().map(|point| Point { value: point.value * factor, ..*point }).collect();
                requests.add(&key, &points, &points);
            }
        }
        Ok((requests.series(), left_out))
    }

    /// The server's metrics that sources have use for.
    async fn metrics(&mut self, sources: &[Source], mapping: &Mapping) -> Result<Vec<String>, ImportError> {
        let (from, until) = (self.query.from_ns / 1_000_000_000, self.query.until_ns / 1_000_000_000);
        let body = self.get(&format!("label/__name__/values?start={from}&end={until}")).await?;
        let names: Vec<String> = self.read(matrix::data(&body))?;
        let is_used = |name: &String| {
            let (key, _) = renamed(name, mapping, BTreeMap::new());
            sources.iter().any(|source| source.part(&key.name).is_some())
        };
        let names: BTreeSet<String> = names.into_iter().take(NAMES_MAX).filter(is_used).collect();
        Ok(names.into_iter().filter(|name| is_name(name)).collect())
    }

    /// The step of all queries: [`SCRAPES`] scrapes, or more where the time is long.
    async fn step_s(&mut self) -> Result<i64, ImportError> {
        let length_s = (self.query.until_ns - self.query.from_ns) / 1_000_000_000;
        let query = format!("quantile(0.5, count_over_time(up[{COUNTED_S}s]))");
        let counts = self.range(&query, (length_s / 10).max(STEP_S_MIN)).await?;
        // The first two minutes of a server have fewer.
        let most = counts.iter().flat_map(|series| &series.points).map(|point| point.value).fold(0.0, f64::max);
        let scrape_s = if most >= 1.0 { (COUNTED_S as f64 / most).round() as i64 } else { SCRAPE_S };
        let scrape_s = scrape_s.clamp(1, SCRAPE_S);
        Ok((scrape_s * SCRAPES).clamp(STEP_S_MIN, STEP_S_MAX).max(length_s / POINTS_MAX))
    }

    /// The result of a query over the whole time, in parts that the server takes.
    async fn range(&mut self, query: &str, step_s: i64) -> Result<Vec<Labelled>, ImportError> {
        let until_s = self.query.until_ns / 1_000_000_000;
        let mut series: Vec<Labelled> = Vec::new();
        let mut from_s = self.query.from_ns / 1_000_000_000 + step_s;
        while from_s <= until_s {
            let end_s = until_s.min(from_s + step_s * (POINTS_AT_ONCE - 1));
            let query = encoded(query);
            let body = self.get(&format!("query_range?query={query}&start={from_s}&end={end_s}&step={step_s}")).await?;
            for part in self.read(matrix::series(&body))? {
                match series.iter_mut().find(|known| known.labels == part.labels) {
                    Some(known) => known.points.extend(part.points),
                    None => series.push(part),
                }
            }
            from_s = end_s + step_s;
        }
        // A rate is of the time before its instant.
        let middle = |point: Point| Point { time_ns: point.time_ns - step_s * 500_000_000, ..point };
        for series in &mut series {
            series.points = std::mem::take(&mut series.points).into_iter().map(middle).collect();
        }
        Ok(series)
    }

    async fn get(&mut self, path: &str) -> Result<Vec<u8>, ImportError> {
        let base = self.query.url.path().trim_end_matches('/');
        let response = self.client.get_path(&format!("{base}/api/v1/{path}"), "application/json").await;
        let reach = "is it a Prometheus server? `kubectl port-forward` reaches one in a cluster";
        let hint = match &response {
            Err(NoResponse::Encrypt(_)) => "SSL_CERT_FILE names a file with the authorities that are trusted",
            Ok(response) if [401, 403].contains(&response.status.as_u16()) => {
                "--auth-file names a file with the token, or USER:PASSWORD, that it wants"
            }
            _ => reach,
        };
        let response = response.map_err(|error| (self.failed)(error.to_string(), hint))?;
        let body = response.body.to_vec();
        // Errors of Prometheus are JSON with a reason.
        if !response.status.is_success() && (hint != reach || !body.starts_with(b"{")) {
            return Err((self.failed)(format!("it responds with {}", response.status), hint));
        }
        Ok(body)
    }

    fn read<T>(&self, result: Result<T, String>) -> Result<T, ImportError> {
        result.map_err(|what| (self.failed)(what, "look at the same query in Prometheus' own page"))
    }
}

/// A series with the name that OTLP has for it, unless it is mapped, and the factor of its values.
fn renamed(name: &str, mapping: &Mapping, labels: BTreeMap<String, String>) -> (SeriesKey, f64) {
    let mut key = SeriesKey { name: name.to_owned(), labels, ..SeriesKey::default() };
    if mapping.has(name) {
        return (key, 1.0);
    }
    key.service = service_of(&key).unwrap_or_default();
    let factor = as_by_otlp(&mut key, 1.0);
    (key, factor)
}

/// Labels to group by: those that name services, callees and how requests end.
fn labels(sources: &[Source]) -> String {
    let of_sources = sources.iter().flat_map(|source| source.service.iter().chain(&source.peer));
    let only = sources.iter().filter_map(|source| source.only).map(|(label, _)| label);
    let all =
        of_sources.map(String::as_str).chain(only).chain(SERVICE.iter().chain(STATUS).copied()).chain(["container"]);
    let all: BTreeSet<String> = all.map(|label| label.replace('.', "_")).filter(|label| is_name(label)).collect();
    all.into_iter().collect::<Vec<_>>().join(",")
}

/// Whether PromQL takes a name without quotes.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
}

/// A text as part of a URL's query.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
