//! Requests pages of metrics, as Prometheus does, at a fixed interval, and keeps what they say.
//!
//! One thread, named `scrape`, with a task for each endpoint: a slow one delays no other. Each endpoint gets one
//! request before anything starts, so that a wrong address is reported at once; what fails later is counted and the
//! first reason kept, since a service that is started again must not end a collection. A page that comes late is
//! requested again at the next due time, never twice at once.
//!
//! Not here: service discovery, TLS, authentication, protobuf exposition, and rules about labels.

mod line;
mod names;
mod page;

pub(crate) use names::as_by_otlp;
pub(crate) use page::{is_sample, read_text};

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use narrows_model::series::SeriesKey;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::http::{Bounds, Client, NotAUrl, Response, Url};
use crate::{KeptCounts, Store};

/// The most endpoints.
pub const ENDPOINTS_MAX: usize = 64;
/// The shortest interval.
pub const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The longest that a page may take.
pub const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest page, in bytes.
pub const PAGE_BYTES_MAX: usize = 16 << 20;

/// Both formats, OpenMetrics first, as Prometheus requests them.
const ACCEPT: &str =
    "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.6,text/plain;q=0.4,*/*;q=0.1";

/// Why nothing can be scraped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The interval is below [`INTERVAL_MIN`].
    #[error("scraping interval is {0:?}, expected {INTERVAL_MIN:?} or more")]
    IntervalTooShort(Duration),
    /// More than [`ENDPOINTS_MAX`].
    #[error("{0} Prometheus endpoints, expected {ENDPOINTS_MAX} or fewer")]
    TooManyEndpoints(usize),
    /// An endpoint returned no page of metrics for the first request.
    #[error("no metrics from {url}: {why}")]
    Endpoint {
        /// Which.
        url: String,
        /// Response instead.
        why: String,
    },
    /// No thread or no epoll to be had.
    #[error("cannot start the scraper's thread")]
    Thread(#[source] std::io::Error),
}

/// A page of metrics, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The service that the series are kept under.
    pub service: String,
    /// Where the page is.
    pub url: Url,
    /// A label and its value: series with another value of it are of no interest. All are kept without one.
    pub only: Option<(String, String)>,
}

impl Endpoint {
    /// Reads `[NAME=]URL`. Without a name the service is the URL's host and port.
    ///
    /// # Errors
    /// When the URL is none; see [`Url::parse`].
    pub fn parse(text: &str) -> Result<Self, NotAUrl> {
        let named = text.split_once('=').filter(|(name, _)| !name.is_empty() && !name.contains(['/', ':', '?']));
        let (name, url) = named.map_or((None, text), |(name, url)| (Some(name), url));
        let url = Url::parse(url)?;
        Ok(Self { service: name.map_or_else(|| url.authority().to_owned(), str::to_owned), url, only: None })
    }

    fn is_wanted(&self, key: &SeriesKey) -> bool {
        let other = |(label, value): &(String, String)| key.labels.get(label).is_some_and(|found| found != value);
        !self.only.as_ref().is_some_and(other)
    }
}

/// Counts of an endpoint since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointStats {
    /// Its URL.
    pub url: String,
    /// Pages that were read.
    pub pages: u64,
    /// Points that were kept.
    pub points: u64,
    /// Points that were not kept, because a ceiling is reached or a page is too long.
    pub refused: u64,
    /// Times that no page came.
    pub failures: u64,
    /// Why not, the first time.
    pub failure: Option<String>,
    /// Lines of pages that made no sense.
    pub malformed: u64,
    /// Fault of the first of them.
    pub complaint: Option<String>,
}

type Shared = Arc<Mutex<Vec<EndpointStats>>>;

/// A running scraper. Dropping it stops it.
#[derive(Debug)]
pub struct Scraper {
    stats: Shared,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Scraper {
    /// Requests every page once, keeps nothing of it, then starts the thread, which requests its first pages at once.
    ///
    /// # Errors
    /// When the interval is too short, there are too many endpoints, one of them gives no metrics, or no thread can be
    /// started.
    pub fn start(endpoints: Vec<Endpoint>, interval: Duration, store: Arc<dyn Store>) -> Result<Self, Error> {
        if interval < INTERVAL_MIN {
            return Err(Error::IntervalTooShort(interval));
        }
        if endpoints.len() > ENDPOINTS_MAX {
            return Err(Error::TooManyEndpoints(endpoints.len()));
        }
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(Error::Thread)?;
        let mut sources: Vec<Source> = endpoints.into_iter().map(Source::new).collect();
        for source in &mut sources {
            let asked = runtime.block_on(source.page());
            asked.map_err(|why| Error::Endpoint { url: source.endpoint.url.to_string(), why })?;
        }
        let of = |source: &Source| EndpointStats { url: source.endpoint.url.to_string(), ..EndpointStats::default() };
        let stats: Shared = Arc::new(Mutex::new(sources.iter().map(of).collect()));
        let (stop, asked_to_stop) = watch::channel(());
        let all = All { sources, interval, store, stats: Arc::clone(&stats), asked_to_stop };
        let thread = std::thread::Builder::new()
            .name("scrape".to_owned())
            .spawn(move || all.run(&runtime))
            .map_err(Error::Thread)?;
        Ok(Self { stats, stop: Some(stop), thread: Some(thread) })
    }

    /// Counts of each endpoint so far, in the order they were given.
    pub fn stats(&self) -> Vec<EndpointStats> {
        lock(&self.stats).clone()
    }

    /// Asks for nothing more, waits for pages under way, and says what became of each endpoint.
    pub fn stop(mut self) -> Vec<EndpointStats> {
        self.end();
        self.stats()
    }

    fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Its panic was printed by the thread itself; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.end();
    }
}

/// State of the thread.
struct All {
    sources: Vec<Source>,
    interval: Duration,
    store: Arc<dyn Store>,
    stats: Shared,
    asked_to_stop: watch::Receiver<()>,
}

impl All {
    fn run(self, runtime: &Runtime) {
        let Self { sources, interval, store, stats, asked_to_stop } = self;
        runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            for (at, source) in sources.into_iter().enumerate() {
                let task = Task { at, store: Arc::clone(&store), stats: Arc::clone(&stats) };
                tasks.spawn(task.run(source, interval, asked_to_stop.clone()));
            }
            while tasks.join_next().await.is_some() {}
        });
    }
}

/// One endpoint under way.
struct Task {
    at: usize,
    store: Arc<dyn Store>,
    stats: Shared,
}

impl Task {
    async fn run(self, mut source: Source, interval: Duration, mut asked_to_stop: watch::Receiver<()>) {
        let mut due = tokio::time::interval(interval);
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = due.tick() => {}
                _ = asked_to_stop.changed() => return,
            }
            match source.page().await {
                Ok(page) => self.keep(page).await,
                Err(why) => self.note(|stats| {
                    stats.failures += 1;
                    stats.failure.get_or_insert(why);
                }),
            }
        }
    }

    async fn keep(&self, page: page::Page) {
        let points = page.points.len() as u64;
        // A busy store gets no second call: the next page reports the same, a second later.
        let kept = match self.store.points(page.points).await {
            Ok(Ok(kept)) => kept,
            Ok(Err(_)) | Err(_) => KeptCounts { over_limit: points, ..KeptCounts::default() },
        };
        self.note(|stats| {
            stats.pages += 1;
            stats.points += kept.kept;
            stats.refused += kept.over_limit + page.over_limit;
            stats.malformed += page.malformed;
            if stats.complaint.is_none() {
                stats.complaint = page.complaint;
            }
        });
    }

    fn note(&self, change: impl FnOnce(&mut EndpointStats)) {
        if let Some(stats) = lock(&self.stats).get_mut(self.at) {
            change(stats);
        }
    }
}

/// An endpoint with its connection.
struct Source {
    endpoint: Endpoint,
    client: Client,
}

impl Source {
    fn new(endpoint: Endpoint) -> Self {
        let bounds = Bounds { timeout: TIMEOUT, body_bytes_max: PAGE_BYTES_MAX };
        Self { client: Client::new(endpoint.url.clone(), bounds), endpoint }
    }

    async fn page(&mut self) -> Result<page::Page, String> {
        let response = self.client.get(ACCEPT).await.map_err(|error| error.to_string())?;
        let mut page = page_of(&response, &self.endpoint.service, now_ns())?;
        page.points.retain(|(key, _)| self.endpoint.is_wanted(key));
        Ok(page)
    }
}

/// The page that a response holds, or in words why it holds none.
fn page_of(response: &Response, service: &str, now_ns: i64) -> Result<page::Page, String> {
    if response.status != StatusCode::OK {
        return Err(format!("it returned {}", response.status));
    }
    let kind = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if matches!(kind.as_str(), "text/html" | "application/json") {
        return Err(format!("it returned {kind}, expected Prometheus' text format or OpenMetrics"));
    }
    let format = match kind.as_str() {
        "application/openmetrics-text" => page::Format::OpenMetrics,
        _ => page::Format::Text,
    };
    let page = page::read(&response.body, format, service, now_ns);
    match &page.complaint {
        Some(complaint) if page.points.is_empty() => {
            Err(format!("its page is neither Prometheus' text format nor OpenMetrics: {complaint}"))
        }
        _ => Ok(page),
    }
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
