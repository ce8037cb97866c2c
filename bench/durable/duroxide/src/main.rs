//! HelloCities5 on duroxide with its SQLite provider: `hello-cities-duroxide N FILE` prints the seconds it took.
//!
//! All orchestrations are started one after the other by one client, which then waits for each. The time is from before
//! the first start to after the last end. Two dispatchers of orchestrations and two of activities, as there are cores;
//! the shortest pause between two looks at the queue is 10 ms in place of 100 ms, which favours it.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};

const CITIES: [&str; 5] = ["Tokyo", "Seattle", "London", "Amsterdam", "Seoul"];
const TIMEOUT: Duration = Duration::from_secs(600);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [n, file] = &words[..] else { return Err("expected a number of orchestrations and a file".into()) };
    let seconds = measure(n.parse()?, Path::new(file)).await?;
    println!("{seconds}");
    Ok(())
}

async fn measure(n: u64, file: &Path) -> Result<f64, Box<dyn Error>> {
    std::fs::File::create_new(file)?;
    let store = Arc::new(SqliteProvider::new(&format!("sqlite:{}", file.display()), None).await?);
    let hello = |_: ActivityContext, city: String| async move { Ok(format!("Hello {city}!")) };
    let activities = ActivityRegistry::builder().register("Hello", hello).build();
    let cities = |ctx: OrchestrationContext, _: String| async move {
        let mut said = Vec::new();
        for city in CITIES {
            said.push(ctx.schedule_activity("Hello", city).await?);
        }
        Ok(said.join(" "))
    };
    let orchestrations = OrchestrationRegistry::builder().register("HelloCities5", cities).build();
    let options = RuntimeOptions {
        dispatcher_min_poll_interval: Duration::from_millis(10),
        orchestration_concurrency: 2,
        worker_concurrency: 2,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store);
    let begun = Instant::now();
    for number in 0..n {
        client.start_orchestration(format!("hello-{number}"), "HelloCities5", "").await?;
    }
    for number in 0..n {
        let ended = client.wait_for_orchestration(&format!("hello-{number}"), TIMEOUT).await?;
        if !matches!(ended, OrchestrationStatus::Completed { .. }) {
            return Err(format!("hello-{number} ended as {ended:?}").into());
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    runtime.shutdown(None).await;
    Ok(seconds)
}
