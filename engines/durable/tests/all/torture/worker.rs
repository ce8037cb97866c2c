//! The process that is killed: a hub under load, which says on its standard output what was acknowledged.

use std::io::Write;
use std::path::Path;
use std::process::Child;

use narrows_durable::{Client, InstanceId, Mode, Reuse, Start};

use super::code::{self, ACCOUNTS, COUNT, INBOX, MOVE, TOKEN, WORK};
use super::node;

/// Prefix of a line that reports an acknowledgement.
pub(crate) const MARK: &str = "acknowledged ";

pub(crate) const FOLDER: &str = "NARROWS_TORTURE_FOLDER";
pub(crate) const ROUND: &str = "NARROWS_TORTURE_ROUND";
const TASKS: u64 = 32;
/// Every so many-th turn of a task raises an event.
pub(crate) const EVENT_EVERY: u64 = 4;
/// Every so many-th text is so long that it lies beside the log.
const LONG_EVERY: u64 = 7;
const LONG_BYTES: usize = 3_000;
/// A round that is not killed ends here.
const NUMBERS_MAX: u64 = 1_000_000;

pub(crate) fn spawn(folder: &Path, round: u64) -> Child {
    super::command().env(FOLDER, folder).env(ROUND, round.to_string()).spawn().unwrap()
}

/// Whether this process was started to be killed.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os(FOLDER).is_some()
}

pub(crate) fn work() {
    let folder = std::env::var(FOLDER).expect("the torture starts this");
    let round: u64 = std::env::var(ROUND).unwrap().parse().unwrap();
    if let Ok(url) = std::env::var(node::HUB) {
        return node::work(&url, Path::new(&folder), round);
    }
    let mode = if round % 3 == 2 { Mode::PersistFirst } else { Mode::Speculative };
    let hub = code::open(Path::new(&folder), mode);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..TASKS).map(|task| tokio::spawn(load(hub.client(), round, task))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn load(client: Client, round: u64, task: u64) {
    let inbox = code::inbox(task);
    let start_inbox = INBOX.start(&0).unwrap().id(&inbox).unwrap().reuse(Reuse::Ignore);
    let inbox: InstanceId = client.start(start_inbox).await.unwrap();
    for number in (task..NUMBERS_MAX).step_by(TASKS as usize) {
        let token = format!("signal-{round}-{number}");
        client.signal_entity(&code::tally(round, number), COUNT, &token).await.unwrap();
        say(&token);
        // An inbox takes one at a time and carries the others along, so it is not to be flooded.
        if (number / TASKS).is_multiple_of(EVENT_EVERY) {
            let token = format!("event-{round}-{number}");
            client.raise_event(&inbox, TOKEN, &token).await.unwrap();
            say(&token);
        }
        let id = client.start(start(round, number)).await.unwrap();
        say(id.as_str());
    }
}

pub(crate) fn start(round: u64, number: u64) -> Start {
    let start = if is_move(number) {
        let (from, by) = (number / 4 % ACCOUNTS, 1 + number / 16 % (ACCOUNTS - 1));
        MOVE.start(&(from, from + by)).unwrap()
    } else {
        WORK.start(&text(number)).unwrap()
    };
    start.id(id(round, number)).unwrap()
}

/// The identifier of the orchestration that [`start`] starts.
pub(crate) fn id(round: u64, number: u64) -> String {
    format!("{}-{round}-{number}", if is_move(number) { "move" } else { "work" })
}

fn is_move(number: u64) -> bool {
    number % 4 == 3
}

fn text(number: u64) -> String {
    "x".repeat(length(number))
}

/// How long the text of a number is.
pub(crate) fn length(number: u64) -> usize {
    if number.is_multiple_of(LONG_EVERY) { LONG_BYTES } else { 10 }
}

pub(crate) fn say(what: &str) {
    // The line feed in front ends what the test harness has begun.
    let line = format!("\n{MARK}{what}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).unwrap();
}
