//! What a person sees while a run lasts: on a terminal one line that renews itself, else a plain line now and then.
//!
//! All of it goes to standard error, so that standard output stays data.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use narrows_lab::progress::{Event, Progress};
use narrows_model::histogram::Histogram;
use narrows_model::load::LoadSecond;
use narrows_model::run::{Trial, TrialState};
use narrows_model::units;

use crate::stderr;

const PLAIN_EVERY: Duration = Duration::from_secs(5);
const SPARK_SECONDS: usize = 24;
const SPARK: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns of the terminal behind standard error, if it is one.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// A line on standard error: renewed in place on a terminal, printed at most every five seconds elsewhere.
#[derive(Debug)]
pub(crate) struct StatusLine {
    is_terminal: bool,
    is_open: bool,
    last_plain: Option<Instant>,
}

impl StatusLine {
    pub(crate) fn new() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), is_open: false, last_plain: None }
    }

    /// Shows the line; it may be replaced by the next.
    pub(crate) fn show(&mut self, line: &str) {
        if self.is_terminal {
            let width = terminal_width().unwrap_or(80).saturating_sub(1);
            let cut: String = line.chars().take(width).collect();
            stderr::write(&format!("\r\x1b[2K{cut}"));
            self.is_open = true;
        } else if self.last_plain.is_none_or(|at| at.elapsed() >= PLAIN_EVERY) {
            stderr::say(line);
            self.last_plain = Some(Instant::now());
        }
    }

    /// Shows a line that a renewed one may replace, but that is always printed where nothing is renewed.
    pub(crate) fn phase(&mut self, line: &str) {
        if !self.is_terminal {
            self.last_plain = None;
        }
        self.show(line);
    }

    /// Prints a line that stays, in place of the renewed one.
    pub(crate) fn keep(&mut self, line: &str) {
        self.clear();
        stderr::say(line);
        self.last_plain = None;
    }

    /// Takes the renewed line away.
    pub(crate) fn clear(&mut self) {
        if self.is_open {
            stderr::write("\r\x1b[2K");
            self.is_open = false;
        }
    }
}

/// Tells a run on standard error.
#[derive(Debug)]
pub(crate) struct Live {
    line: StatusLine,
    /// The parameters that tell the trials apart.
    varied: Vec<String>,
    spark: Spark,
    since: Instant,
    requests: u64,
    errors: u64,
}

impl Live {
    pub(crate) fn new() -> Self {
        Self {
            line: StatusLine::new(),
            varied: Vec::new(),
            spark: Spark::default(),
            since: Instant::now(),
            requests: 0,
            errors: 0,
        }
    }

    /// Takes the renewed line away; what follows is the result.
    pub(crate) fn finish(&mut self) {
        self.line.clear();
    }

    fn trial_started(&mut self, trial: &Trial, position: usize, of: usize) {
        self.spark = Spark::default();
        (self.requests, self.errors) = (0, 0);
        self.since = Instant::now();
        self.line.keep(&format!("[{position}/{of}] {}{}", trial.label(), setting(trial, &self.varied)));
    }

    fn second(&mut self, elapsed: Duration, duration: Option<Duration>, rows: &[LoadSecond]) {
        let done: u64 = rows.iter().map(|row| row.succeeded).sum();
        self.requests += done;
        self.errors += rows.iter().map(|row| row.errors.total()).sum::<u64>();
        let seconds = distinct_seconds(rows).max(1);
        self.spark.add(done as f64 / seconds as f64);
        let text = format!(
            "  load {}  {}  {:>9}  {}  {} errors  {}",
            progress(elapsed, duration),
            users(current_vus(rows)),
            units::rate(done as f64 / seconds as f64),
            latency_text(rows),
            units::count(self.errors),
            self.spark.draw(),
        );
        self.line.show(&text);
    }

    fn trial_ended(&mut self, trial: &Trial) {
        let took = units::duration(self.since.elapsed().as_nanos() as f64);
        let how = match trial.state {
            TrialState::Done => "done",
            TrialState::Interrupted => "interrupted",
            _ => "failed",
        };
        self.line.keep(&format!(
            "  {how} in {took}: {} requests, {} errors",
            units::count(self.requests),
            units::count(self.errors)
        ));
    }
}

impl Progress for Live {
    fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::RunStarted { path, trials, already_done, varied } => {
                self.varied = varied.to_vec();
                let before = if *already_done > 0 { format!(" ({already_done} done before)") } else { String::new() };
                let noun = if *trials == 1 { "trial" } else { "trials" };
                self.line.keep(&format!("{} → {trials} {noun}{before}", path.display()));
            }
            Event::TrialStarted { trial, position, of } => self.trial_started(trial, *position, *of),
            Event::SettingUp { service, command } => self.line.keep(&format!("  setting up {service}: {command}")),
            Event::Starting { service, replica } => self.line.phase(&format!("  starting {service}{}", nth(*replica))),
            Event::LoadStarted { duration } => {
                self.line.phase(&format!("  load {}", progress(Duration::ZERO, *duration)))
            }
            Event::Second { elapsed, duration, rows } => self.second(*elapsed, *duration, rows),
            Event::Stopping => self.line.phase("  stopping services"),
            Event::TrialEnded { trial } => self.trial_ended(trial),
            Event::Caveat(caveat) => self.line.keep(&format!("  caveat: {caveat}")),
        }
    }
}

/// Throughput of the last seconds as a row of bars.
#[derive(Debug, Default)]
pub(crate) struct Spark {
    values: std::collections::VecDeque<f64>,
}

impl Spark {
    pub(crate) fn add(&mut self, value: f64) {
        if self.values.len() == SPARK_SECONDS {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    pub(crate) fn draw(&self) -> String {
        let max = self.values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let level = |value: &f64| SPARK[((value / max * 7.0).round() as usize).min(7)];
        self.values.iter().map(level).collect()
    }
}

/// `p50 3.10 ms  p95 8.20 ms` over all rows.
pub(crate) fn latency_text(rows: &[LoadSecond]) -> String {
    let mut latency = Histogram::new();
    rows.iter().for_each(|row| latency.merge(&row.latency));
    if latency.count() == 0 {
        return "no answer yet".to_owned();
    }
    let at = |q| units::duration(latency.quantile_ns(q) as f64);
    format!("p50 {:>7}  p95 {:>7}", at(0.5), at(0.95))
}

pub(crate) fn distinct_seconds(rows: &[LoadSecond]) -> usize {
    let starts: std::collections::BTreeSet<i64> = rows.iter().map(|row| row.start_ns).collect();
    starts.len()
}

fn current_vus(rows: &[LoadSecond]) -> u32 {
    let last = rows.iter().map(|row| row.start_ns).max();
    rows.iter().filter(|row| Some(row.start_ns) == last).map(|row| row.vus).sum()
}

/// `  (pool=5, cache=on)`: the value of each of these parameters in a trial.
fn setting(trial: &Trial, names: &[String]) -> String {
    let values = trial.parameters.iter().filter(|(name, _)| names.contains(name));
    let values: Vec<String> = values.map(|(name, value)| format!("{name}={value}")).collect();
    if values.is_empty() { String::new() } else { format!("  ({})", values.join(", ")) }
}

/// `  8 users`, always as wide.
fn users(n: u32) -> String {
    let noun = if n == 1 { "user " } else { "users" };
    format!("{n:>3} {noun}")
}

/// `0:07/0:30`, or `0:07` when the end is not known.
fn progress(elapsed: Duration, duration: Option<Duration>) -> String {
    match duration {
        Some(duration) => format!("{}/{}", clock(elapsed.min(duration)), clock(duration)),
        None => clock(elapsed),
    }
}

/// `0:07`, `12:30`.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn nth(replica: u32) -> String {
    if replica > 0 { format!("[{replica}]") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_bars() {
        assert_eq!(clock(Duration::from_secs(754)), "12:34");
        assert_eq!((users(1).as_str(), users(40).as_str()), ("  1 user ", " 40 users"));
        let mut spark = Spark::default();
        (0..40).for_each(|i| spark.add(f64::from(i)));
        assert_eq!(spark.draw().chars().count(), SPARK_SECONDS);
        assert!(spark.draw().ends_with('█'));
    }
}
