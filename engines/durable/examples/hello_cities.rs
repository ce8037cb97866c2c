//! HelloCities5: many orchestrations, each of five activities in a row; how many events a second that makes.
//!
//! ```text
//! hello_cities [--n N] [--launch direct|entities] [--store files|classic|memory] [--folder DIR] [--partitions P]
//!              [--activities ordinary|idempotent]
//! ```
//!
//! An activity called and answered is 2 events, so an orchestration is 10. The time is that from the earliest creation
//! to the latest completion, as the hub's own query tells them; throughput is 10·N over it. `entities` signals 50
//! launcher entities that start N/50 orchestrations each.

use std::error::Error;
use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use narrows_durable::store::{Batching, ClassicStore, FileStore, FileStoreOptions, MemoryStore, Store};
use narrows_durable::{
    Activity, ActivityContext, Client, Ctx, EntityOp, EntityType, Failure, Filter, Hub, HubOptions, InstanceId,
    Orchestration, Registry, Status, Values,
};

const HELLO: Activity<String, String> = Activity::new("Hello");
const HELLO_CITIES: Orchestration<(), Vec<String>> = Orchestration::new("HelloCities5");
const LAUNCHER: EntityType<u64> = EntityType::new("Launcher");
const LAUNCH: EntityOp<u64, (u64, u64), ()> = EntityOp::new("Launch");

const CITIES: [&str; 5] = ["Tokyo", "Seattle", "London", "Amsterdam", "Seoul"];
const EVENTS_PER_ORCHESTRATION: u64 = 10;
const LAUNCHERS: u64 = 50;
const N_MAX: u64 = 10_000_000;
const PAGE: usize = 10_000;
const POLL: Duration = Duration::from_millis(2);

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Arguments {
    n: u64,
    is_launched_by_entities: bool,
    is_idempotent: bool,
    store: String,
    folder: Option<String>,
    partitions: Option<u16>,
}

impl Arguments {
    fn read() -> Outcome<Self> {
        let mut read = Self {
            n: 1_000,
            is_launched_by_entities: false,
            is_idempotent: false,
            store: "files".to_owned(),
            folder: None,
            partitions: None,
        };
        let mut words = std::env::args().skip(1);
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name}: a value is missing"))?;
            match name.as_str() {
                "--n" => read.n = value.parse().map_err(|error| wrong(&name, &value, error))?,
                "--launch" => read.is_launched_by_entities = choice(&name, &value, ["direct", "entities"])?,
                "--activities" => read.is_idempotent = choice(&name, &value, ["ordinary", "idempotent"])?,
                "--store" => read.store = value,
                "--folder" => read.folder = Some(value),
                "--partitions" => {
                    read.partitions = Some(value.parse().map_err(|error| wrong(&name, &value, error))?);
                }
                _ => return Err(format!("{name}: there is no such option").into()),
            }
        }
        if !(LAUNCHERS..=N_MAX).contains(&read.n) {
            return Err(wrong("--n", &read.n.to_string(), format!("expected {LAUNCHERS} to {N_MAX}")).into());
        }
        Ok(read)
    }
}

fn wrong(name: &str, value: &str, why: impl Display) -> String {
    format!("{name} {value:?}: {why}")
}

/// Whether the second of two words was given.
fn choice(name: &str, value: &str, words: [&str; 2]) -> Outcome<bool> {
    match words.iter().position(|word| *word == value) {
        Some(at) => Ok(at == 1),
        None => Err(wrong(name, value, format!("expected {} or {}", words[0], words[1])).into()),
    }
}

fn code(is_idempotent: bool) -> Registry {
    let hello = |_: ActivityContext, city: String| async move { Ok::<_, Failure>(format!("Hello {city}!")) };
    let mut code = Registry::new();
    if is_idempotent {
        code.idempotent_activity(HELLO, hello);
    } else {
        code.activity(HELLO, hello);
    }
    code.orchestration(HELLO_CITIES, |ctx: Ctx, (): ()| async move {
        let mut said = Vec::with_capacity(CITIES.len());
        for city in CITIES {
            said.push(ctx.call(HELLO, &city.to_owned()).await?);
        }
        Ok::<_, Failure>(said)
    });
    code.entity(LAUNCHER).operation(LAUNCH, |launched, (first, count): (u64, u64), ctx| {
        for number in first..first + count {
            ctx.start_as(HELLO_CITIES, &instance(number)?, &())?;
        }
        *launched += count;
        Ok(())
    });
    code
}

fn instance(number: u64) -> Result<InstanceId, Failure> {
    InstanceId::new(format!("hello-{number}")).map_err(|error| Failure::application(error.to_string()))
}

/// A store, and the folder that goes when this does.
fn open_store(arguments: &Arguments) -> Outcome<(Arc<dyn Store>, tempfile::TempDir)> {
    let scratch = tempfile::tempdir()?;
    let folder = arguments.folder.as_ref().map_or_else(|| scratch.path().to_owned(), Into::into);
    let store: Arc<dyn Store> = match arguments.store.as_str() {
        "files" => Arc::new(FileStore::open(&folder, FileStoreOptions::default())?),
        "memory" => Arc::new(MemoryStore::new()),
        "classic" => {
            std::fs::create_dir_all(&folder)?;
            Arc::new(ClassicStore::open(folder.join("hub.db"))?)
        }
        other => return Err(wrong("--store", other, "expected files, classic or memory").into()),
    };
    Ok((store, scratch))
}

async fn launch(client: &Client, arguments: &Arguments) -> Outcome<()> {
    if !arguments.is_launched_by_entities {
        let starts: Result<Vec<_>, Box<dyn Error>> =
            (0..arguments.n).map(|number| Ok(HELLO_CITIES.start(&())?.id(instance(number)?.as_str())?)).collect();
        for started in client.start_many(starts?).await? {
            started?;
        }
        return Ok(());
    }
    for launcher in 0..LAUNCHERS {
        let (first, end) = (arguments.n * launcher / LAUNCHERS, arguments.n * (launcher + 1) / LAUNCHERS);
        client.signal_entity(&LAUNCHER.id(launcher.to_string())?, LAUNCH, &(first, end - first)).await?;
    }
    Ok(())
}

/// From the earliest creation to the latest completion, in microseconds; all must have completed.
async fn duration_us(client: &Client, n: u64) -> Outcome<u64> {
    let (mut first, mut last, mut completed, mut next) = (u64::MAX, 0, 0, None);
    loop {
        let page = client.query(Filter::default(), PAGE, Values::Without, next).await?;
        for view in &page.instances {
            first = first.min(view.created.0);
            last = last.max(view.updated.0);
            completed += u64::from(view.status == Status::Completed);
        }
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    if completed != n {
        return Err(format!("{completed} orchestrations have completed, expected {n}").into());
    }
    Ok((last - first).max(1))
}

/// Processor time of this process in microseconds, to the nearest tick of 10 ms (Linux).
fn cpu_us() -> Outcome<u64> {
    const TICK_US: u64 = 10_000;
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let spent = ticks(11).zip(ticks(12)).ok_or("/proc/self/stat: user and system time are missing")?;
    Ok((spent.0 + spent.1) * TICK_US)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments = Arguments::read()?;
    let (store, _scratch) = open_store(&arguments)?;
    let is_grouped = store.batching() == Batching::Group;
    let mut options = HubOptions::default();
    options.partitions = arguments.partitions.unwrap_or(options.partitions);
    let hub = Hub::open(store, code(arguments.is_idempotent), options)?;
    let client = hub.client();
    if client.count(Filter::default()).await? > 0 {
        return Err("the folder holds orchestrations already, expected an empty one".into());
    }
    let cpu_before = cpu_us()?;
    launch(&client, &arguments).await?;
    while hub.stats().partitions.iter().map(|partition| partition.counts.ended).sum::<u64>() < arguments.n {
        tokio::time::sleep(POLL).await;
    }
    let cpu = cpu_us()? - cpu_before;
    let duration = duration_us(&client, arguments.n).await?;
    hub.close()?;
    report(&hub, &arguments, is_grouped, (duration, cpu))
}

fn report(hub: &Hub, arguments: &Arguments, is_grouped: bool, (duration, cpu): (u64, u64)) -> Outcome<()> {
    let stats = hub.stats().partitions;
    let events = arguments.n * EVENTS_PER_ORCHESTRATION;
    let bytes: u64 = stats.iter().map(|partition| partition.commit_bytes).sum();
    let commits: u64 =
        stats.iter().map(|partition| if is_grouped { partition.commits } else { partition.commit_frames }).sum();
    let seconds = duration as f64 / 1e6;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:>8} {:>8} {:>10} {:>10} {:>9} {:>10} {:>10} {:>11} {:>9} {:>12}",
        "store", "launch", "partitions", "n", "time s", "events/s", "orch/s", "log B/event", "commits", "cpu us/event"
    )?;
    writeln!(
        out,
        "{:>8} {:>8} {:>10} {:>10} {:>9.3} {:>10.0} {:>10.0} {:>11.1} {:>9} {:>12.2}",
        arguments.store,
        if arguments.is_launched_by_entities { "entities" } else { "direct" },
        stats.len(),
        arguments.n,
        seconds,
        events as f64 / seconds,
        arguments.n as f64 / seconds,
        bytes as f64 / events as f64,
        commits,
        cpu as f64 / events as f64
    )?;
    Ok(())
}
