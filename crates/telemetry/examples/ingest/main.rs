//! Measures what keeping spans costs: CPU time for each span that came by OTLP/HTTP, bytes of the file for each span,
//! and the time of queries through the views.
//!
//! `cargo run --release -p narrows-telemetry --example ingest -- [SPANS] [FILE]`, one million spans and a temporary file
//! without arguments. Four services, each with its own connection, send batches of 512 spans of traces of ten: three
//! server spans, two client spans between services, four database calls, one internal span, with 6 to 12 attributes
//! each, among them ports, paths, charges and ids that differ from span to span. Only the threads that receive and write
//! are counted, not those that make and send the batches. Spans become rows when the file is finished: what that takes,
//! indices included, is told apart.
//!
//! For comparing with other programs (`bench/telemetry.py`) the parts run by themselves: `bodies SPANS FILE` writes the
//! requests down, `send ADDRESS FILE` sends them, `serve ADDRESS FILE SPANS` receives until its input ends.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on should end")]

mod sender;
mod traffic;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use narrows_model::run::RunState;
use narrows_telemetry::otlp::{Receiver, Weights};
use narrows_telemetry::run_file::{Reader, RunFile, TraceLimit};
use rusqlite::Connection;
use traffic::{SERVICES, SPANS_PER_TRACE, T0};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let traces = |spans: &str| spans.parse::<u64>().unwrap() / SPANS_PER_TRACE;
    match arguments[..] {
        ["bodies", spans, file] => sender::write_bodies(Path::new(file), traces(spans)),
        ["send", address, file] => {
            let begun = Instant::now();
            let sent = sender::send_bodies(address.parse().unwrap(), Path::new(file));
            say(&format!("{sent} spans in {:.3} s", begun.elapsed().as_secs_f64()));
        }
        ["serve", address, file, spans] => serve(address.parse().unwrap(), Path::new(file), traces(spans)),
        _ => {
            let folder = tempfile::tempdir().unwrap();
            let path = arguments.get(1).map_or_else(|| folder.path().join("ingest.narrows"), PathBuf::from);
            ingest(&path, traces(arguments.first().unwrap_or(&"1000000")));
            query(&path);
            read(&path);
        }
    }
}

fn say(line: &str) {
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// A receiver that writes into a new file.
fn start(address: SocketAddr, path: &Path, traces: u64) -> (RunFile, Receiver) {
    let file = RunFile::create(path, &traffic::run()).unwrap();
    let recorder = file.recorder();
    recorder.put_trial(&traffic::trial()).unwrap();
    recorder.put_windows(1, &[traffic::window(traces)]).unwrap();
    recorder.set_trial(Some(1));
    let receiver = Receiver::start(&[address], Arc::new(recorder), Weights::new()).unwrap();
    (file, receiver)
}

fn serve(address: SocketAddr, path: &Path, traces: u64) {
    let (file, receiver) = start(address, path, traces);
    say("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    say(&format!("{} spans received", receiver.stop().spans));
    file.finish(RunState::Complete).unwrap();
}

fn ingest(path: &Path, traces: u64) {
    let (file, receiver) = start("127.0.0.1:0".parse().unwrap(), path, traces);
    let address = receiver.local_addr();
    let (begun, before) = (Instant::now(), cpu_time());
    let sent: u64 = std::thread::scope(|scope| {
        let senders: Vec<_> =
            (0..SERVICES.len()).map(|service| scope.spawn(move || sender::send(address, service, traces))).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).sum()
    });
    let (took, cpu) = (begun.elapsed(), cpu_time());
    let used: Vec<Duration> = cpu[..2].iter().zip(before).map(|(after, before)| *after - before).collect();
    let core_seconds = used.iter().sum::<Duration>().as_secs_f64();
    let stats = receiver.stop();
    let peak = memory_peak_mib();
    say(&format!("spans received                 {:>12}", stats.spans));
    say(&format!("spans per second (wall clock)  {:>12.0}", sent as f64 / took.as_secs_f64()));
    say(&format!("spans per core-second          {:>12.0}", sent as f64 / core_seconds));
    say(&format!("  receiving, us per span       {:>12.2}", used[0].as_secs_f64() * 1e6 / sent as f64));
    say(&format!("  writing, us per span         {:>12.2}", used[1].as_secs_f64() * 1e6 / sent as f64));
    say(&format!("peak memory, MiB               {peak:>12}"));
    let (ending, before) = (Instant::now(), cpu_time()[2]);
    file.finish(RunState::Complete).unwrap();
    say(&format!("finishing the file, s          {:>12.2}", ending.elapsed().as_secs_f64()));
    let finishing = (cpu_time()[2] - before).as_secs_f64();
    say(&format!("  making rows, us per span     {:>12.2}", finishing * 1e6 / sent as f64));
    say(&format!("spans to query per core-second {:>12.0}", sent as f64 / (core_seconds + finishing)));
    let bytes = std::fs::metadata(path).unwrap().len();
    say(&format!("bytes of file per span         {:>12.1}", bytes as f64 / sent as f64));
}

fn query(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let has_ns = connection.prepare("SELECT timestamp_ns FROM requests").is_ok();
    let (column, from, to) = match has_ns {
        true => ("timestamp_ns", (T0 + 5_000_000_000).to_string(), (T0 + 35_000_000_000).to_string()),
        false => ("timestamp", "'2026-11-21T12:00:05'".to_owned(), "'2026-11-21T12:00:35'".to_owned()),
    };
    let sums = format!(
        "SELECT (SELECT sum(itemCount) FROM requests WHERE success = 1 AND name = 'GET /api/orders/{{id}}' \
         AND {column} BETWEEN {from} AND {to}), (SELECT sum(itemCount) FROM dependencies \
         WHERE type IN ('azure.cosmosdb', 'Azure DocumentDB') AND {column} BETWEEN {from} AND {to})"
    );
    let means = "SELECT name, count(*), avg(duration) FROM requests GROUP BY name ORDER BY 2 DESC".to_owned();
    let attribute =
        "SELECT sum(weight) FROM spans WHERE json_extract(attributes, '$.\"enduser.id\"') = '17'".to_owned();
    for (what, sql) in [("requests and dependencies", sums), ("means by name", means), ("an attribute", attribute)] {
        let begun = Instant::now();
        let row: (Option<rusqlite::types::Value>, Option<rusqlite::types::Value>) = connection
            .query_row(&sql, [], |row| {
                Ok((row.get(0)?, if row.as_ref().column_count() > 1 { row.get(1)? } else { None }))
            })
            .unwrap();
        say(&format!("query: {what:<24}{:>11.3} s  {row:?}", begun.elapsed().as_secs_f64()));
    }
}

fn read(path: &Path) {
    let begun = Instant::now();
    let evidence = Reader::open(path).unwrap().evidence(TraceLimit::default()).unwrap();
    say(&format!("reading the evidence, s        {:>12.2}", begun.elapsed().as_secs_f64()));
    say(&format!("spans in the file              {:>12}", evidence.trials[0].spans_total));
}

/// CPU time of the threads that receive, of the one that writes, and of all others.
fn cpu_time() -> [Duration; 3] {
    let mut times = [Duration::ZERO; 3];
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let name = std::fs::read_to_string(task.join("comm")).unwrap();
        let ns = std::fs::read_to_string(task.join("schedstat")).unwrap();
        let ns = ns.split(' ').next().unwrap().parse().unwrap();
        match name.trim() {
            name if name.starts_with("otlp-") => times[0] += Duration::from_nanos(ns),
            "run-file" => times[1] += Duration::from_nanos(ns),
            _ => times[2] += Duration::from_nanos(ns),
        }
    }
    times
}

fn memory_peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}
