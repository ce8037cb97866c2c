//! An eight-hour load, written with historical timestamps, is read in as little memory as a short run.

use std::path::PathBuf;
use std::process::Command;

use narrows_model::load::{LoadBatch, LoadSecond};
use narrows_model::run::{RunState, TrialState, Window, WindowKind};
use narrows_model::series::{Point, SeriesKey, names};
use narrows_telemetry::Store;
use narrows_telemetry::run_file::RunFile;

use crate::common::{Bench, ask, end, text};
use crate::query::{START_NS, run, trial};

const SECONDS: i64 = 8 * 3_600;
const SECOND_NS: i64 = 1_000_000_000;
/// Requests of one scenario in one second.
const REQUESTS: u64 = 8;
/// Seconds written per batch.
const AT_ONCE: i64 = 20;
/// Memory that commands may allocate, in KiB: half of what the unfolded seconds alone would need.
const DATA_KIB: u32 = 224 << 10;
const CPU: [&str; 4] = [names::HOST_CPU_UTILIZATION, names::HOST_CPU_STEAL, names::CPU_CORES, names::MEMORY_BYTES];

/// A second with latencies from 0.2 to 60 ms, like those of a server with occasional garbage collections.
fn second(scenario: &str, at: i64) -> LoadSecond {
    let mut row = LoadSecond {
        scenario: scenario.into(),
        start_ns: START_NS + at * SECOND_NS,
        vus: 4,
        sent: REQUESTS,
        succeeded: REQUESTS,
        ..LoadSecond::default()
    };
    for request in 0..REQUESTS {
        let us = 200 + (at.unsigned_abs() * 31 + request * 7_919) % 3_000 + if request == 0 { 57_000 } else { 0 };
        row.latency.record(us * 1_000 + 5_000);
        row.service.record(us * 1_000);
        row.lateness.record(5_000 + request * 100);
    }
    row
}

fn points(at: i64) -> Vec<(SeriesKey, Point)> {
    let key = |name: &str| {
        let unit = names::SAMPLED.iter().find(|(sampled, _)| *sampled == name).map_or("1", |(_, unit)| unit);
        let service = if name.starts_with("host") { "" } else { names::GENERATOR };
        SeriesKey {
            name: name.into(),
            unit: unit.into(),
            service: service.into(),
            replica: 0,
            labels: Default::default(),
        }
    };
    CPU.iter().map(|name| (key(name), Point { time_ns: START_NS + at * SECOND_NS, value: 0.25 })).collect()
}

fn made(bench: &Bench) -> PathBuf {
    let path = bench.path("long.narrows");
    let file = RunFile::create(&path, &run()).unwrap();
    let recorder = file.recorder();
    recorder.put_trial(&trial()).unwrap();
    recorder.set_trial(Some(1));
    let window = |index: u32, kind, label: &str, from: i64, to: i64| Window {
        index,
        kind,
        label: label.into(),
        start_ns: START_NS + from * SECOND_NS,
        end_ns: START_NS + to * SECOND_NS,
        drained_ns: None,
        vus: 8,
        rate: None,
    };
    let windows =
        [window(0, WindowKind::Warmup, "warm-up", 0, 60), window(1, WindowKind::Steady, "8 users", 60, SECONDS)];
    let boundaries: Vec<i64> = windows.iter().flat_map(|window| [window.start_ns, window.end_ns]).collect();
    recorder.fold_between(1, &boundaries).unwrap();
    for from in (0..SECONDS).step_by(AT_ONCE as usize) {
        let seconds = (from..from + AT_ONCE).flat_map(|at| ["read", "write"].map(|scenario| second(scenario, at)));
        recorder.put_load(1, LoadBatch { seconds: seconds.collect(), samples: Vec::new() }).unwrap();
        let points = (from..from + AT_ONCE).flat_map(points).collect();
        recorder.points(points).blocking_recv().unwrap().unwrap();
    }
    recorder.put_windows(1, &windows).unwrap();
    let ended = narrows_model::run::Trial {
        state: TrialState::Done,
        ended_ns: Some(START_NS + SECONDS * SECOND_NS),
        ..trial()
    };
    recorder.put_trial(&ended).unwrap();
    file.finish(RunState::Complete).unwrap();
    path
}

/// The same command with limited memory.
fn limited(command: &Command) -> Command {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -d {DATA_KIB} && exec \"$0\" \"$@\"")]);
    limited.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

#[test]
fn eight_hours_are_diagnosed_and_reported_in_little_memory() {
    let bench = Bench::new("");
    let path = made(&bench);
    let (rows, requests) = (2 * SECONDS, 2 * SECONDS * REQUESTS as i64);
    assert_eq!(ask(&path, "SELECT count(*) FROM load_seconds"), rows.to_string());
    assert_eq!(ask(&path, "SELECT sum(count) FROM load_latency WHERE measure = 'latency'"), requests.to_string());
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes < 60 << 20, "{bytes} bytes of two scenarios");
    for arguments in [&["diagnose", "long.narrows"][..], &["report", "long.narrows", "--html", "page.html"]] {
        let output = end(limited(&bench.narrows(arguments)));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    }
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("8 users") && page.len() < 4 << 20, "{} bytes", page.len());
}
