//! A process with a hub is killed at random moments, over and over, and what it had acknowledged is held against what
//! is found in the end. So it is with several processes that share a hub, and with the servers that it is on: they are
//! killed, paused for longer than a lease, and restarted; see [`nodes`].
//!
//! Proved after the last fault: every acknowledged start has completed with its result; every orchestration that is
//! there has completed; every operation of an entity took effect once, be it a signal of a client, a call or a signal
//! of an orchestration, or one inside a critical section; every acknowledged event was taken once; every activity ran,
//! always under the same key.
//!
//! `NARROWS_TORTURE_ROUNDS` and `NARROWS_TORTURE_SEED` set how many rounds there are and which moments are drawn. The
//! moments are drawn from the seed; what the kernel does around them is not.

#![allow(clippy::print_stderr, reason = "what was done is to be known when it fails")]

mod check;
mod code;
mod node;
mod nodes;
mod replaced;
mod worker;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use narrows_testing::{Chance, torture};

const ROUNDS: u64 = 10;
const TIMEOUT: Duration = Duration::from_secs(120);
const KILL_AFTER_MS_MAX: usize = 600;
const KILL_AFTER_ACKS_MAX: usize = 1_500;

#[test]
fn acknowledged_work_survives_kills() {
    if worker::is_wanted() {
        return worker::work();
    }
    let (rounds, mut chance) = torture(ROUNDS);
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..rounds {
        let said = one_round(folder.path(), round, &mut chance);
        eprintln!("round {round}: {} acknowledged", said.len());
        acknowledged.extend(said);
    }
    check::all(folder.path(), &acknowledged);
}

/// Runs a worker, kills it, and gives what it had acknowledged. Every other round is killed after so much time, which
/// may be while it recovers; the others while it works.
fn one_round(folder: &Path, round: u64, chance: &mut Chance) -> Vec<String> {
    let mut worker = worker::spawn(folder, round);
    let stdout = worker.stdout.take().unwrap();
    let wanted = if round.is_multiple_of(2) { chance.below(KILL_AFTER_ACKS_MAX) as u64 } else { u64::MAX };
    let (tell, told) = sync_channel(1);
    let reader = std::thread::spawn(move || {
        read(stdout, |said| {
            if said.len() as u64 >= wanted {
                // One report is enough.
                let _ = tell.try_send(());
            }
        })
    });
    if wanted < u64::MAX {
        told.recv_timeout(TIMEOUT).expect("the worker works");
    }
    let after_ms = if wanted < u64::MAX { chance.below(20) } else { chance.below(KILL_AFTER_MS_MAX) };
    std::thread::sleep(Duration::from_millis(after_ms as u64));
    kill(&mut worker);
    reader.join().unwrap()
}

fn kill(worker: &mut Child) {
    use std::os::unix::process::ExitStatusExt;
    const SIGKILL: i32 = 9;
    worker.kill().unwrap();
    let status = worker.wait().unwrap();
    assert_eq!(status.signal(), Some(SIGKILL), "the worker ended by itself: {status}");
}

/// The acknowledgements of a worker until it is dead. Calls `report` with all of them after each one, and also before
/// the first.
fn read(stdout: ChildStdout, mut report: impl FnMut(&[String])) -> Vec<String> {
    let mut said = Vec::new();
    let mut lines = BufReader::new(stdout);
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        // A line without an end was cut by the kill.
        if let Some(text) = line.strip_prefix(worker::MARK).and_then(|text| text.strip_suffix('\n')) {
            said.push(text.to_owned());
            report(&said);
        } else if said.is_empty() {
            report(&said);
        }
        line.clear();
    }
    said
}

/// This program, whose test becomes the worker; see [`worker`].
fn command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "torture::acknowledged_work_survives_kills", "--nocapture"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}
