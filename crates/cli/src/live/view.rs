//! The view of a running load: a few lines of any width, or one plain line. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_model::histogram::Histogram;
use narrows_model::load::{ErrorCounts, ErrorKind, LoadSecond};
use narrows_model::units;

use super::spark::Spark;

/// The widest bar of progress, and the narrowest that is worth drawing.
const BAR_WIDTH: std::ops::RangeInclusive<usize> = 10..=40;
const LABEL_WIDTH: usize = 12;
/// The most bars of throughput, and of the plain line.
const SPARK_WIDTH: usize = 48;
const SPARK_WIDTH_PLAIN: usize = 24;

/// No rate is shown for partial seconds shorter than this, at window boundaries and at the end of the load.
const SHOWN_FROM_S: f64 = 0.5;

/// When a load is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// After this time.
    Time(Duration),
    /// After so many requests.
    Requests(u64),
    /// Nobody knows.
    Unknown,
}

/// A load as far as it has come.
#[derive(Debug)]
pub(crate) struct View {
    until: Until,
    elapsed: Duration,
    spark: Spark,
    /// Requests that ended, since the beginning.
    pub(crate) ended: u64,
    pub(crate) errors: ErrorCounts,
    late: u64,
    dropped: u64,
    now: Now,
}

/// Figures of the newest seconds.
#[derive(Debug, Default)]
struct Now {
    /// Successes per second.
    rate: f64,
    latency: Histogram,
    vus: u32,
    /// Iterations due per second; `None` where no scenario's load is open.
    due: Option<f64>,
}

impl View {
    pub(crate) fn new(until: Until) -> Self {
        Self {
            until,
            elapsed: Duration::ZERO,
            spark: Spark::default(),
            ended: 0,
            errors: ErrorCounts::default(),
            late: 0,
            dropped: 0,
            now: Now::default(),
        }
    }

    /// Takes in the seconds that are over; there is at least one.
    pub(crate) fn add(&mut self, elapsed: Duration, rows: &[LoadSecond]) {
        let Some(last_ns) = rows.iter().map(|row| row.start_ns).max() else { return };
        self.elapsed = elapsed;
        self.see_now(last_ns, rows);
        for row in rows {
            self.errors.add(row.errors);
            self.ended += row.ended();
            self.late += row.late;
            self.dropped += row.dropped;
        }
    }

    /// Shows rates and latencies of the newest seconds, unless these are too short for a rate.
    fn see_now(&mut self, last_ns: i64, rows: &[LoadSecond]) {
        let lengths: BTreeMap<i64, i64> = rows.iter().map(|row| (row.start_ns, row.length_ns)).collect();
        let seconds = lengths.values().sum::<i64>() as f64 / 1e9;
        if seconds < SHOWN_FROM_S {
            return;
        }
        for (start_ns, length_ns) in lengths.iter().filter(|(_, length_ns)| **length_ns > 0) {
            let succeeded: u64 = rows.iter().filter(|row| row.start_ns == *start_ns).map(|row| row.succeeded).sum();
            self.spark.add(succeeded as f64 * 1e9 / *length_ns as f64);
        }
        let due: u64 = rows.iter().map(|row| row.due).sum();
        let was_open = self.now.due.is_some();
        self.now = Now {
            rate: rows.iter().map(|row| row.succeeded).sum::<u64>() as f64 / seconds,
            latency: Histogram::new(),
            vus: rows.iter().filter(|row| row.start_ns == last_ns).map(|row| row.vus).sum(),
            due: (due > 0 || was_open).then_some(due as f64 / seconds),
        };
        rows.iter().for_each(|row| self.now.latency.merge(&row.latency));
    }

    /// Whether a load that took so long came to its planned end.
    pub(crate) fn is_whole(&self, took: Duration) -> bool {
        match self.until {
            Until::Time(all) => took >= all,
            Until::Requests(all) => self.ended >= all,
            Until::Unknown => false,
        }
    }

    /// A few lines, none of them wider than `width` if that is 50 or more.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let label = |name: &str, text: String| format!("  {name:<LABEL_WIDTH$}{text}");
        let rate = format!("{:>10}", units::rate(self.now.rate));
        let room = width.saturating_sub(2 + LABEL_WIDTH + rate.chars().count() + 2).min(SPARK_WIDTH);
        vec![
            self.progress_line(width),
            label("throughput", format!("{rate}  {}", self.spark.draw(room))),
            label("latency", self.latency()),
            label("load", joined(&self.load(), width.saturating_sub(2 + LABEL_WIDTH))),
            label("errors", joined(&errors_in_words(self.errors), width.saturating_sub(2 + LABEL_WIDTH))),
        ]
    }

    /// All of it on one line.
    pub(crate) fn line(&self) -> String {
        format!(
            "  load {}  {}  {}  {}  {} errors  {}",
            self.time(),
            joined(&self.load(), usize::MAX),
            units::rate(self.now.rate),
            self.latency(),
            units::count(self.errors.total()),
            self.spark.draw(SPARK_WIDTH_PLAIN),
        )
    }

    fn progress_line(&self, width: usize) -> String {
        let left = self.left().map_or_else(String::new, |left| format!(", {} left", clock(left)));
        let text = match self.until {
            Until::Requests(requests) => {
                format!("{}  {} of {} requests{left}", self.time(), units::count(self.ended), units::count(requests))
            }
            _ => format!("{}{left}", self.time()),
        };
        let room = width.saturating_sub(4 + text.chars().count()).min(*BAR_WIDTH.end());
        match self.share() {
            Some(share) if room >= *BAR_WIDTH.start() => format!("  {}  {text}", bar(share, room)),
            _ => format!("  {text}"),
        }
    }

    /// How much of the load is done, 0 to 1.
    fn share(&self) -> Option<f64> {
        let (done, all) = match self.until {
            Until::Time(all) => (self.elapsed.as_secs_f64(), all.as_secs_f64()),
            Until::Requests(all) => (self.ended as f64, all as f64),
            Until::Unknown => return None,
        };
        (all > 0.0).then(|| (done / all).clamp(0.0, 1.0))
    }

    fn left(&self) -> Option<Duration> {
        match self.until {
            Until::Time(all) => Some(all.saturating_sub(self.elapsed)),
            Until::Requests(_) => {
                let share = self.share().filter(|share| *share > 0.0)?;
                Duration::try_from_secs_f64(self.elapsed.as_secs_f64() * (1.0 - share) / share).ok()
            }
            Until::Unknown => None,
        }
    }

    /// `0:07/0:30`, or `0:07` when the end is not known.
    fn time(&self) -> String {
        match self.until {
            Until::Time(all) => format!("{}/{}", clock(self.elapsed.min(all)), clock(all)),
            _ => clock(self.elapsed),
        }
    }

    /// `8 users`, or `500/s due`, `3 late`, `0 dropped`, `8 users`.
    fn load(&self) -> Vec<String> {
        let users = format!("{} user{}", self.now.vus, if self.now.vus == 1 { "" } else { "s" });
        let open = |due: f64| {
            let (late, dropped) = (units::count(self.late), units::count(self.dropped));
            vec![format!("{} due", units::rate(due)), format!("{late} late"), format!("{dropped} dropped")]
        };
        self.now.due.map(open).into_iter().flatten().chain([users]).collect()
    }

    fn latency(&self) -> String {
        if self.now.latency.count() == 0 {
            return "no response yet".to_owned();
        }
        let at = |q| units::duration(self.now.latency.quantile_ns(q) as f64);
        format!("p50 {:>7}  p95 {:>7}  p99 {:>7}", at(0.5), at(0.95), at(0.99))
    }
}

fn errors_in_words(errors: ErrorCounts) -> Vec<String> {
    let kinds = ErrorKind::ALL.iter().filter(|kind| errors.of(**kind) > 0);
    let kinds: Vec<String> =
        kinds.map(|kind| format!("{} {}", units::count(errors.of(*kind)), kind.as_str())).collect();
    if kinds.is_empty() { vec!["none".to_owned()] } else { kinds }
}

/// As many of the parts as fit, with commas between them, and a sign where some did not.
fn joined(parts: &[String], width: usize) -> String {
    let all = parts.join(", ");
    if all.chars().count() <= width {
        return all;
    }
    let shorter = |n: usize| format!("{}, …", parts[..n].join(", "));
    (1..parts.len()).rev().map(shorter).find(|text| text.chars().count() <= width).unwrap_or_else(|| "…".to_owned())
}

fn bar(share: f64, width: usize) -> String {
    let full = (share * width as f64).round() as usize;
    "█".repeat(full.min(width)) + &"░".repeat(width.saturating_sub(full))
}

/// `0:07`, `12:30`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: i64, succeeded: u64) -> LoadSecond {
        let mut row = LoadSecond { start_ns: at * 1_000_000_000, succeeded, vus: 8, ..LoadSecond::default() };
        row.latency.record_n(3_000_000, succeeded);
        row
    }

    fn seen(until: Until, rows: &[LoadSecond]) -> View {
        let mut view = View::new(until);
        rows.iter().for_each(|row| {
            view.add(Duration::from_nanos(row.start_ns as u64 + 1_000_000_000), std::slice::from_ref(row))
        });
        view
    }

    #[test]
    fn a_load_in_lines() {
        let mut failing = row(2, 500);
        failing.errors = ErrorCounts { timeout: 3, status: 1_200, ..ErrorCounts::default() };
        let view = seen(Until::Time(Duration::from_secs(12)), &[row(0, 1_000), row(1, 250), failing]);
        insta::assert_snapshot!(view.lines(60).join("\n"), @r"
        █████████░░░░░░░░░░░░░░░░░░░░░░░░░░░  0:03/0:12, 0:09 left
        throughput       500/s  █▃▅
        latency     p50 3.00 ms  p95 3.00 ms  p99 3.00 ms
        load        8 users
        errors      3 timeout, 1,200 status
        ");
        insta::assert_snapshot!(view.line(), @"  load 0:03/0:12  8 users  500/s  p50 3.00 ms  p95 3.00 ms  p99 3.00 ms  1,203 errors  █▃▅");
    }

    #[test]
    fn an_open_load_says_what_was_due() {
        let mut open = row(0, 480);
        (open.due, open.late, open.dropped) = (500, 20, 5);
        let view = seen(Until::Requests(2_000), &[open]);
        insta::assert_snapshot!(view.lines(80).join("\n"), @r"
        █████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0:01  480 of 2,000 requests, 0:03 left
        throughput       480/s  █
        latency     p50 3.00 ms  p95 3.00 ms  p99 3.00 ms
        load        500/s due, 20 late, 5 dropped, 8 users
        errors      none
        ");
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let mut open = row(0, 123_456);
        (open.due, open.late, open.dropped) = (123_456, 12_345, 12_345);
        ErrorKind::ALL.iter().for_each(|kind| *open.errors.of_mut(*kind) = 123_456);
        for until in [Until::Time(Duration::from_secs(86_400)), Until::Requests(1_234_567), Until::Unknown] {
            let rows: Vec<LoadSecond> = (0..90).map(|at| row(at, 123_456)).chain([open.clone()]).collect();
            let view = seen(until, &rows);
            for width in [59, 79, 119, 300] {
                for line in view.lines(width) {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn before_the_first_second_there_is_no_number() {
        let view = View::new(Until::Requests(10));
        assert!(view.lines(80)[2].contains("no response yet"), "{:?}", view.lines(80));
        assert!(view.lines(80)[0].contains("0 of 10 requests"));
    }
}
