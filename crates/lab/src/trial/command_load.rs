//! A load that another program sends: `k6 run …`, `wrk …`, a script.
//!
//! The program is a process of the trial: it is guarded and marked, its output is kept, and its CPU time is sampled
//! under a name that no service can have. Its requests are not observed directly: the trial's seconds are counted from
//! the spans of its target ([`super::roots`]), and its number of users stays unknown. If it reports totals, these are
//! the trial's figures. The trial has one window, the program's own run time.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use narrows_model::caveat::{SpanSource, TrialCaveat};
use narrows_model::load::{LoadBatch, LoadProgram, Threshold};
use narrows_model::run::{Trial, Window, WindowKind};
use rustix::process::Signal;

use crate::Error;
use crate::components::process::{Process, Spec};
use crate::environment::now_ns;
use crate::experiment::{BoundCommand, Results, SERVICE_TOKEN_VARIABLE};
use crate::progress::{Event, Progress};
use crate::trial::replica_end::{Lives, note_the_ended};
use crate::trial::root_spans::RootFilter;
use crate::trial::services::{RunningReplica, resolve_own_name};
use crate::trial::{Bench, k6_summary};

/// As which the program's output and its use of the machine are kept. A service's name has no space.
const NAME: &str = "load command";
const POLL: Duration = Duration::from_millis(20);
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
const SUMMARY_FLAG: &str = "--summary-export";
const SUMMARY_VARIABLE: &str = "K6_SUMMARY_EXPORT";
/// k6's exit code when all went well but a threshold of its script was crossed.
const K6_THRESHOLDS_CROSSED: i32 = 99;

/// How a program came to its end.
enum End {
    /// By itself, in these words.
    Itself(String),
    /// It was still running when its time was up.
    AtLimit(Duration),
}

impl Bench<'_> {
    /// Runs the program to its end, its limit or a signal.
    pub(crate) fn load_by_command(
        &mut self,
        command: &BoundCommand,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let program = program(command);
        self.weights.set(None);
        let start_ns = now_ns();
        let is_service = |target: &&String| self.experiment.services.contains(target);
        let service = self.experiment.load.target.as_ref().filter(is_service).cloned();
        let summary = summary_path(command, &self.scratch_path(trial.id));
        self.recorder.fold_between(trial.id, &[start_ns])?;
        self.roots.start(RootFilter { service, scenario: program.clone(), start_ns });
        let spec = Spec {
            service: NAME.to_owned(),
            replica: 0,
            command: resolve_own_name(&command.command),
            cwd: command.cwd.clone(),
            env: environment(command, summary.as_deref()),
            account: None,
            wanted_line: None,
        };
        let mut process = Process::start(&spec, None, &self.mark, &self.store, &mut self.guard)?;
        self.sampler.watch(NAME, 0, process.pid())?;
        progress.tell(&Event::LoadStarted { duration: None });
        let followed = self.follow_command(&mut process, command.limit, trial, running, progress);
        note_the_ended(running, trial, progress);
        let end_ns = now_ns().max(start_ns + 1);
        self.roots.end(end_ns);
        let window = Window {
            index: 0,
            kind: WindowKind::Steady,
            label: program.clone(),
            start_ns,
            end_ns,
            drained_ns: None,
            vus: 0,
            rate: None,
        };
        let seconds = (window.end_ns - window.start_ns) as f64 / 1e9;
        self.recorder.put_windows(trial.id, &[window])?;
        let code = process.exit_code();
        let last_lines = process.last_lines().last_words();
        process.stop(Signal::TERM, STOP_TIMEOUT, &mut self.guard);
        match (followed?, code) {
            (End::AtLimit(limit), _) => {
                let (program, limit_ns) = (program.clone(), limit.as_nanos() as f64);
                progress.note(trial, TrialCaveat::LoadCommandEnded { program, limit_ns });
            }
            (End::Itself(_), Some(0)) => {}
            (End::Itself(_), Some(K6_THRESHOLDS_CROSSED)) if is_k6(command) => {
                progress.note(trial, TrialCaveat::K6ThresholdsCrossed);
            }
            (End::Itself(how), _) => return Err(Error::LoadCommand { program, how, last_lines }),
        }
        let mut made = LoadProgram { name: program, thresholds: Vec::new(), reported: None };
        if let Some(path) = summary {
            progress.note(trial, take_summary(&path, seconds, &mut made));
        }
        if code == Some(K6_THRESHOLDS_CROSSED) && !made.thresholds.iter().any(|threshold| threshold.is_crossed) {
            made.thresholds.push(Threshold { text: "thresholds of its script".to_owned(), is_crossed: true });
        }
        trial.load_program = Some(made);
        Ok(())
    }

    /// Follows the program to its end or its limit. A signal or a dead service is an error.
    fn follow_command(
        &mut self,
        process: &mut Process,
        limit: Option<Duration>,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<End, Error> {
        let mut lives = Lives::new();
        let started = Instant::now();
        let mut seconds = 0;
        loop {
            if let Some(how) = process.ended() {
                return Ok(End::Itself(how));
            }
            self.look_around(&mut lives, running, Some(process.pid()), trial, progress)?;
            if let Some(limit) = limit.filter(|limit| started.elapsed() > *limit) {
                return Ok(End::AtLimit(limit));
            }
            if started.elapsed().as_secs() > seconds {
                seconds = started.elapsed().as_secs();
                progress.tell(&Event::Second { elapsed: started.elapsed(), duration: None, rows: &[] });
            }
            std::thread::sleep(POLL);
        }
    }

    /// Writes down the requests that were counted from spans, once the last of them is in; nothing in other trials.
    pub(super) fn keep_requests_of_spans(
        &mut self,
        trial: &mut Trial,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let Some(counted) = self.roots.finish() else { return Ok(()) };
        let requests: u64 = counted.seconds.iter().map(|row| row.sent).sum();
        let (service, is_continued) = (counted.service, counted.is_continued);
        let has_totals = trial.load_program.as_ref().is_some_and(|program| program.reported.is_some());
        let caveat = match requests {
            0 => TrialCaveat::NoSpanBeginsRequest { service, has_totals },
            _ => {
                let spans = SpanSource { service, is_continued };
                TrialCaveat::RequestsCountedFromSpans { requests, spans, has_totals }
            }
        };
        progress.note(trial, caveat);
        if let Some(last) = counted.seconds.last() {
            let first_ns = counted.seconds[0].start_ns;
            let elapsed = Duration::from_nanos((last.end_ns() - first_ns).max(0) as u64);
            progress.tell(&Event::Second { elapsed, duration: None, rows: &counted.seconds });
        }
        self.recorder.put_load(trial.id, LoadBatch { seconds: counted.seconds, samples: Vec::new() })?;
        Ok(())
    }
}

/// The program's name without its folder.
fn program(command: &BoundCommand) -> String {
    let program = command.command.first().map(String::as_str).unwrap_or_default();
    Path::new(program).file_name().map_or_else(|| program.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn is_k6(command: &BoundCommand) -> bool {
    command.results == Results::K6Summary || program(command) == "k6"
}

/// Where k6 writes its summary: where its arguments or its environment say, else in the trial's folder.
fn summary_path(command: &BoundCommand, folder: &Path) -> Option<PathBuf> {
    if command.results != Results::K6Summary {
        return None;
    }
    let mut arguments = command.command.iter();
    let argument = arguments.find_map(|argument| argument.strip_prefix(SUMMARY_FLAG)).and_then(|rest| {
        rest.strip_prefix('=').or_else(|| if rest.is_empty() { arguments.next().map(String::as_str) } else { None })
    });
    let variable = || command.env.iter().find(|(name, _)| name == SUMMARY_VARIABLE).map(|(_, value)| value.as_str());
    Some(argument.or_else(variable).map_or_else(|| folder.join("k6-summary.json"), |path| command.cwd.join(path)))
}

/// The command's own environment, and for k6 where to write its summary.
fn environment(command: &BoundCommand, summary: Option<&Path>) -> Vec<(String, String)> {
    let summary = summary.map(|path| (SUMMARY_VARIABLE.to_owned(), path.to_string_lossy().into_owned()));
    // Other processes of a run get no tokens, but this program calls a service that may ask for one.
    let token = std::env::var(SERVICE_TOKEN_VARIABLE).ok().map(|token| (SERVICE_TOKEN_VARIABLE.to_owned(), token));
    summary.into_iter().chain(token).chain(command.env.iter().cloned()).collect()
}

/// Takes over k6's summary of a load of `seconds` seconds, and returns a caveat on it.
fn take_summary(path: &Path, seconds: f64, made: &mut LoadProgram) -> TrialCaveat {
    let mut json = String::new();
    let read = narrows_files::open(path).and_then(|file| file.take(k6_summary::BYTES_MAX).read_to_string(&mut json));
    match read.map_err(|error| error.to_string()).and_then(|_| k6_summary::read(&json, seconds)) {
        Ok(summary) => {
            made.thresholds = summary.thresholds;
            made.reported = Some(summary.load);
            TrialCaveat::K6Totals { load: summary.load, latency_of: summary.latency_of.to_owned() }
        }
        Err(reason) => TrialCaveat::K6SummaryUnreadable { path: path.display().to_string(), reason },
    }
}

#[cfg(test)]
mod tests {
    use narrows_diagnose::words::trial_caveat;

    use super::*;

    fn command(words: &[&str], env: &[(&str, &str)], results: Results) -> BoundCommand {
        BoundCommand {
            command: words.iter().map(|word| (*word).to_owned()).collect(),
            cwd: "/srv".into(),
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            results,
            limit: None,
        }
    }

    #[test]
    fn k6_writes_its_summary_where_it_is_set_or_into_the_trials_folder() {
        let path = |words: &[&str], env: &[(&str, &str)]| {
            summary_path(&command(words, env, Results::K6Summary), Path::new("/trial")).unwrap()
        };
        let cases: [(&[&str], &str); 4] = [
            (&["k6", "run", "s.js"], "/trial/k6-summary.json"),
            (&["k6", "run", "--summary-export", "a.json", "s.js"], "/srv/a.json"),
            (&["k6", "run", "--summary-export=/b.json", "s.js"], "/b.json"),
            (&["k6", "run", "--summary-export"], "/trial/k6-summary.json"),
        ];
        for (words, expected) in cases {
            assert_eq!(path(words, &[]), Path::new(expected), "{words:?}");
        }
        assert_eq!(path(&["k6"], &[(SUMMARY_VARIABLE, "c.json")]), Path::new("/srv/c.json"));
        assert_eq!(summary_path(&command(&["wrk"], &[], Results::TraceRoots), Path::new("/trial")), None);
    }

    #[test]
    fn an_unreadable_summary_is_a_caveat_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        let taken = || {
            let mut made = LoadProgram { name: "k6".into(), thresholds: Vec::new(), reported: None };
            let sentence = trial_caveat(&take_summary(&path, 2.0, &mut made));
            (sentence, made.reported.map(|load| load.requests))
        };
        let (sentence, requests) = taken();
        assert!(sentence.contains("summary.json cannot be read") && requests.is_none(), "{sentence}");
        std::fs::write(&path, r#"{"metrics": {"http_reqs": {"count": 7}}}"#).unwrap();
        let (sentence, requests) = taken();
        assert!(sentence.starts_with("k6 itself counts 7 requests, 3.50/s"), "{sentence}");
        assert_eq!(requests, Some(7));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(taken().0.contains("cannot be read"));
    }
}
