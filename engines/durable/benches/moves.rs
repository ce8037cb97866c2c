//! Time that clients wait for a partition with many instances while it moves to another node: because its node closes, and
//! because its node crashes.
//!
//! ```text
//! cargo bench -p narrows-durable --bench moves -- nats://127.0.0.1:4222/moves
//! cargo bench -p narrows-durable --bench moves -- postgres://me@127.0.0.1/postgres?hub=moves 100000
//! ```
//!
//! The second number is that of the instances. The hub must be new.

#![allow(clippy::print_stdout, reason = "it is a command, and this is its result")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use narrows_durable::{
    Client, Ctx, ExternalEvent, Filter, HubOptions, InstanceId, Node, NodeOptions, Orchestration, Registry, Start,
};
use narrows_durable_servers::open_shared;

const INSTANCES: u64 = 100_000;
/// Instances that are started in one request.
const LOT: u64 = 10_000;
const WAITING: Orchestration<u64, ()> = Orchestration::new("waiting");
const GO: ExternalEvent<()> = ExternalEvent::new("go");
/// How long the clients ask before and after a move.
const CALM: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` adds an option for the usual harness.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let url = arguments.next().ok_or("expected the connection text of a store, such as nats://127.0.0.1:4222/moves")?;
    let instances = arguments.next().map_or(Ok(INSTANCES), |count| count.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (first, second) = (open(&url)?, open(&url)?);
    runtime.block_on(fill(&first.client(), instances))?;
    println!("{instances} instances in one partition, which waits for events");

    let gap = longest_wait(&runtime, &second.client(), || first.close())?;
    check(&runtime, &second.client(), instances)?;
    println!("its node closes:  the longest wait of a client was {:.3} s", gap.as_secs_f64());

    let third = open(&url)?;
    let lease = NodeOptions::default().lease;
    let crash = || {
        second.halt();
        Ok(())
    };
    let gap = longest_wait(&runtime, &third.client(), crash)?;
    check(&runtime, &third.client(), instances)?;
    println!(
        "its node crashes: the longest wait of a client was {:.3} s, with a lease of {:?}",
        gap.as_secs_f64(),
        lease
    );
    Ok(())
}

fn open(url: &str) -> Result<Node, Box<dyn Error>> {
    let mut options = HubOptions::default();
    options.partitions = 1;
    let mut code = Registry::new();
    code.orchestration(WAITING, |ctx: Ctx, _: u64| async move { ctx.event(GO).await });
    Ok(Node::open(open_shared(url)?, code, options, NodeOptions::default())?)
}

async fn fill(client: &Client, instances: u64) -> Result<(), Box<dyn Error>> {
    for first in (0..instances).step_by(LOT as usize) {
        let start = |number: u64| WAITING.start(&number)?.id(name(number));
        let starts: Result<Vec<Start>, _> = (first..instances.min(first + LOT)).map(start).collect();
        client.start_many(starts?).await?.into_iter().collect::<Result<Vec<InstanceId>, _>>()?;
    }
    Ok(())
}

fn name(number: u64) -> String {
    format!("waiting-{number}")
}

/// Looks at one instance after the other while `happen` happens and for a while after it. The longest look.
fn longest_wait(
    runtime: &tokio::runtime::Runtime,
    client: &Client,
    happen: impl FnOnce() -> Result<(), narrows_durable::Error>,
) -> Result<Duration, Box<dyn Error>> {
    let is_over = Arc::<AtomicBool>::default();
    let (seen, client) = (Arc::clone(&is_over), client.clone());
    let looking = runtime.spawn(async move {
        let (mut longest, mut looks) = (Duration::ZERO, 0);
        while !seen.load(Ordering::Relaxed) {
            let begun = Instant::now();
            client.get(&InstanceId::new(name(looks % 1_000))?).await?;
            longest = longest.max(begun.elapsed());
            looks += 1;
        }
        Ok::<_, narrows_durable::Error>(longest)
    });
    std::thread::sleep(CALM);
    happen()?;
    // A look that began before this is waited for below.
    std::thread::sleep(CALM);
    is_over.store(true, Ordering::Relaxed);
    Ok(runtime.block_on(looking)??)
}

fn check(runtime: &tokio::runtime::Runtime, client: &Client, instances: u64) -> Result<(), Box<dyn Error>> {
    let count = runtime.block_on(client.count(Filter::default()))?;
    if count == instances { Ok(()) } else { Err(format!("{count} instances are left of {instances}").into()) }
}
