//! Progress of a run that is under way, read from its file once a second, for however many look on.
//!
//! One task reads for all viewers of a run and ends with the last of them. The file is opened for as long as one reading takes:
//! while it is open, its writer could not make it a plain file.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use narrows_model::run::RunState;
use narrows_model::table::Table;
use narrows_telemetry::run_file::Reader;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::error::Refusal;
use crate::sql::{self, LIMITS};

const INTERVAL: Duration = Duration::from_secs(1);
/// Readings that may fail one after the other.
const FAILURES_MAX: u32 = 5;
/// Seconds that are kept of a run; of a longer one, the last.
const SECONDS_MAX: usize = 7_200;

/// A run as it stands: every second of its newest trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Progress {
    pub(crate) state: String,
    pub(crate) variant: String,
    /// Trials that are done, and all.
    pub(crate) trials: (usize, usize),
    pub(crate) verdict: String,
    pub(crate) seconds: Vec<Second>,
    trial: i64,
}

/// A second of the load, of all scenarios together.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Second {
    pub(crate) start_ns: i64,
    pub(crate) users: i64,
    /// Requests per second that succeeded, and that failed.
    pub(crate) requests: (f64, f64),
    /// Median and 95 % latency, nanoseconds; `None` without a response.
    pub(crate) latency_ns: [Option<f64>; 2],
    /// Cores, by service; `narrows` is the load.
    pub(crate) cores: BTreeMap<String, f64>,
}

impl Progress {
    /// Data for a page, of the seconds from this place on.
    pub(crate) fn json(&self, from: usize) -> String {
        let seconds: Vec<Value> = self.seconds.iter().skip(from).map(Second::json).collect();
        json!({
            "state": self.state, "variant": self.variant, "done": self.trials.0, "trials": self.trials.1,
            "verdict": self.verdict, "trial": self.trial, "from": from, "seconds": seconds,
        })
        .to_string()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state != "running"
    }

    /// The next state, after what was recorded since.
    fn read(&self, path: &Path) -> Result<Self, Refusal> {
        let reader = Reader::open(path)?;
        let (run, trials) = (reader.run()?, reader.trials()?);
        let state = match run.state {
            RunState::Running => "running",
            RunState::Complete => "complete",
            RunState::Interrupted => "interrupted",
            RunState::Failed => "failed",
        };
        let newest = trials.iter().rev().find(|trial| trial.started_ns.is_some());
        let trial = newest.map_or(0, |trial| trial.id);
        let mut next = Self {
            state: state.to_owned(),
            variant: newest.map(|trial| trial.label()).unwrap_or_default(),
            trials: (trials.iter().filter(|trial| trial.ended_ns.is_some()).count(), trials.len()),
            verdict: newest.map(|trial| format!("{:?}", trial.validity.verdict).to_lowercase()).unwrap_or_default(),
            seconds: if trial == self.trial { self.seconds.clone() } else { Vec::new() },
            trial,
        };
        let after_ns = next.seconds.last().map_or(i64::MIN, |second| second.start_ns);
        let ask = |query: &str| reader.sql(query, &LIMITS);
        let loads = ask(&format!(
            "SELECT start_ns, sum(vus), sum(succeeded), sum(errors_connect + errors_reset + errors_timeout + errors_protocol \
             + errors_status + errors_check), max(length_ns) FROM load_seconds WHERE trial = {trial} AND start_ns > {after_ns} GROUP BY 1 \
             ORDER BY 1"
        ))?;
        let buckets = ask(&format!(
            "SELECT start_ns, (lower_ns + upper_ns) / 2.0, sum(count) FROM load_latency WHERE trial = {trial} \
             AND measure = 'latency' AND start_ns > {after_ns} GROUP BY 1, 2 ORDER BY 1, 2"
        ))?;
        let cores = ask(&format!(
            "SELECT time_ns, service, sum(value) FROM metrics WHERE trial = {trial} AND name = 'process.cpu.cores' \
             AND time_ns > {after_ns} GROUP BY 1, 2 ORDER BY 1"
        ))?;
        next.seconds.extend(seconds(&loads, &buckets, &cores));
        let surplus = next.seconds.len().saturating_sub(SECONDS_MAX);
        next.seconds.drain(..surplus);
        Ok(next)
    }
}

/// Seconds from rows of the load, of its histograms and of CPU, each in order of time.
fn seconds(loads: &Table, buckets: &Table, cores: &Table) -> Vec<Second> {
    let mut histograms: HashMap<i64, Vec<(f64, f64)>> = HashMap::new();
    for row in &buckets.rows {
        let bucket = (sql::number(row.get(1)).unwrap_or(0.0), sql::number(row.get(2)).unwrap_or(0.0));
        histograms.entry(sql::integer(row.first()).unwrap_or(0)).or_default().push(bucket);
    }
    let second = |row: &Vec<_>| {
        let start_ns = sql::integer(row.first()).unwrap_or(0);
        let histogram = histograms.get(&start_ns).map_or(&[][..], Vec::as_slice);
        let figure = |at| sql::number(row.get(at)).unwrap_or(0.0);
        // A second is cut where a window ends.
        let length = (figure(4) / 1e9).max(1e-3);
        let within = cores.rows.iter().filter(|row| {
            sql::integer(row.first()).is_some_and(|at| (start_ns..start_ns.saturating_add(1_000_000_000)).contains(&at))
        });
        Second {
            start_ns,
            users: sql::integer(row.get(1)).unwrap_or(0),
            requests: (figure(2) / length, figure(3) / length),
            latency_ns: [0.5, 0.95].map(|share| quantile(histogram, share)),
            cores: within
                .map(|row| (sql::text(row.get(1)).to_owned(), sql::number(row.get(2)).unwrap_or(0.0)))
                .collect(),
        }
    };
    loads.rows.iter().map(second).collect()
}

/// The value below which a share of a histogram lies: buckets of middle and count, in order.
fn quantile(buckets: &[(f64, f64)], share: f64) -> Option<f64> {
    let all: f64 = buckets.iter().map(|(_, count)| count).sum();
    let mut seen = 0.0;
    let found = buckets.iter().find(|(_, count)| {
        seen += count;
        seen >= share * all
    });
    found.map(|(middle, _)| *middle)
}

impl Second {
    fn json(&self) -> Value {
        json!({
            "at": self.start_ns as f64 / 1e9, "users": self.users, "rate": self.requests.0, "errors": self.requests.1,
            "p50": self.latency_ns[0], "p95": self.latency_ns[1], "cores": self.cores,
        })
    }
}

/// Readings of runs for those who look on.
#[derive(Debug, Default)]
pub(crate) struct Live {
    followed: Mutex<HashMap<PathBuf, watch::Receiver<Arc<Progress>>>>,
}

impl Live {
    /// The progress of a run, as it is read.
    pub(crate) fn follow(self: &Arc<Self>, path: &Path) -> watch::Receiver<Arc<Progress>> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(receiver) = followed.get(path).filter(|receiver| receiver.has_changed().is_ok()) {
            return receiver.clone();
        }
        let (sender, receiver) = watch::channel(Arc::default());
        followed.insert(path.to_owned(), receiver.clone());
        tokio::spawn(read_on(Arc::clone(self), path.to_owned(), sender));
        receiver
    }
}

/// Reads until the run is over or the last viewer has left.
async fn read_on(live: Arc<Live>, path: PathBuf, sender: watch::Sender<Arc<Progress>>) {
    let mut failures = 0;
    loop {
        let (before, file) = (Arc::clone(&sender.borrow()), path.clone());
        let read = tokio::task::spawn_blocking(move || before.read(&file)).await;
        let Ok(Ok(next)) = read else {
            // A file that becomes a plain one cannot be read for a moment.
            failures += 1;
            if failures > FAILURES_MAX {
                break;
            }
            tokio::time::sleep(INTERVAL).await;
            continue;
        };
        failures = 0;
        let is_over = next.is_over();
        sender.send_replace(Arc::new(next));
        if is_over || sender.receiver_count() <= 1 {
            break;
        }
        tokio::time::sleep(INTERVAL).await;
    }
    live.followed.lock().unwrap_or_else(PoisonError::into_inner).remove(&path);
}

#[cfg(test)]
mod tests {
    use narrows_model::table::{Cell, Column, ColumnType};

    use super::*;

    fn table(rows: Vec<Vec<Cell>>) -> Table {
        let column = Column { name: "x".into(), kind: ColumnType::Real };
        Table { columns: vec![column], rows, is_cut: false, chart: None }
    }

    #[test]
    fn a_second_has_its_percentiles_and_cores() {
        let at = Cell::Integer(5_000_000_000);
        let loads = table(vec![vec![
            at.clone(),
            Cell::Integer(8),
            Cell::Integer(90),
            Cell::Integer(10),
            Cell::Integer(500_000_000),
        ]]);
        let bucket = |ns: f64, count| vec![at.clone(), Cell::Real(ns), Cell::Integer(count)];
        let buckets = table(vec![bucket(10.0, 60), bucket(20.0, 30), bucket(90.0, 10)]);
        let cores = table(vec![vec![Cell::Integer(5_400_000_000), Cell::Text("shop".into()), Cell::Real(0.5)]]);
        let found = seconds(&loads, &buckets, &cores);
        let expected = Second {
            start_ns: 5_000_000_000,
            users: 8,
            requests: (180.0, 20.0),
            latency_ns: [Some(10.0), Some(90.0)],
            cores: [("shop".to_owned(), 0.5)].into(),
        };
        assert_eq!(found, [expected]);
        assert_eq!(quantile(&[], 0.5), None);
    }
}
