//! `narrows system hello-cities hub|once`: workloads of durable orchestrations, as a service or one by one.

use std::path::PathBuf;
use std::time::Duration;

use narrows_serving::stop_signal;
use narrows_system::{BoundService, CommandOutcome, ListenArguments};

use crate::{Activities, Config, Error, Figures, Launch, Plan, StoreKind, Workload, once, open};

/// Durable orchestrations over the engine's log or over SQLite: one service, or one workload and its figures
#[derive(Debug, clap::Args)]
pub struct Command {
    #[command(subcommand)]
    service: Service,
}

#[derive(Debug, clap::Subcommand)]
enum Service {
    /// Runs the workloads that requests ask for, one at a time
    ///
    /// `POST /workloads/hello-cities?n=1000&launch=direct` runs one and returns its figures as JSON.
    Hub(Hub),
    /// Runs one workload and prints its figures as a table
    Once(Once),
}

#[derive(Debug, clap::Args)]
struct Hub {
    #[command(flatten)]
    listen: ListenArguments,
    #[command(flatten)]
    hub: HubSettings,
}

#[derive(Debug, clap::Args)]
struct HubSettings {
    /// Store of the hub's state: files, classic, memory, or a server that several processes may share, by its connection
    /// text (postgres://user@host/database?hub=NAME, nats://host:4222/NAME) or as postgres, postgres-classic or nats
    #[arg(long, value_name = "KIND", default_value = "files")]
    store: String,
    /// The server that `--store postgres` means, and `--store postgres-classic` with a transaction for each step
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// The server that `--store nats` means
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    /// Where; it must hold no orchestrations [default: a temporary folder that is removed afterwards]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Round trip in milliseconds that each call of the store takes longer, as if the state were on another machine: a
    /// commit of many steps one, and with a transaction for each step one for each
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    store_delay_ms: u64,
    /// Throughput units of the log of a hub in one process, each of 1 MB and 1,000 appends in a second; beyond them, the
    /// log is busy and requests a wait of 4 s. 0 is no quota
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=40))]
    throughput_units: u16,
    /// Partitions of the hub, 1 to 64 [default: one per processor]
    #[arg(long, value_name = "N")]
    partitions: Option<u16>,
    /// When activities may start: ordinary (once their scheduling is durable) or idempotent (at once)
    #[arg(long, value_name = "KIND", default_value = "ordinary")]
    activities: Activities,
    /// The share of orchestrations whose spans are recorded
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    sample: f64,
    /// The number of this process among those that share a hub on a server
    #[arg(long, value_name = "N", default_value_t = 0)]
    node: u16,
    /// Seconds that such a process may be silent before the others take its partitions; the same for all
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    lease: u64,
}

#[derive(Debug, clap::Args)]
struct Once {
    /// hello-cities, fan-out-fan-in, sub-orchestrations, entity-calls, counter, periodic or waiting
    #[arg(default_value = "hello-cities")]
    workload: Workload,
    /// Orchestrations, or signals of the counter [default: 1000; fan-out-fan-in 200, counter 100000]
    #[arg(long, value_name = "N")]
    n: Option<u64>,
    /// Activities (fan-out-fan-in), calls (sub-orchestrations, entity-calls) or timers (periodic) of each orchestration
    /// [default: 1000, 5, 10]
    #[arg(long, value_name = "N")]
    each: Option<u64>,
    /// How hello-cities starts: direct, entities or one-by-one [default: direct below 10000, else entities]
    #[arg(long, value_name = "HOW")]
    launch: Option<Launch>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hub: HubSettings,
}

impl Command {
    /// Opens the hub as a service, which ends at SIGTERM or SIGINT, or when another process replaces its node; or runs
    /// one workload.
    ///
    /// # Errors
    ///
    /// [`Error`] if it cannot listen there, a setting is outside its range, the hub cannot be opened, or the workload
    /// fails.
    pub async fn run(self) -> Result<CommandOutcome, Error> {
        match &self.service {
            Service::Hub(hub) => {
                let listen = hub.listen.resolve()?;
                let stop = stop_signal()?;
                let (service, replaced) = open(listen, &hub.hub.config()?).await?;
                let address = service.address();
                let end = async {
                    tokio::select! {
                        () = stop => {}
                        () = replaced => {}
                    }
                };
                Ok(CommandOutcome::Service(BoundService::new("hub", address, service.run(end))))
            }
            Service::Once(asked) => {
                let plan = asked.plan()?;
                let figures = once(&asked.hub.config()?, &plan).await?;
                Ok(CommandOutcome::Text(asked.text(&figures)?))
            }
        }
    }
}

impl HubSettings {
    fn config(&self) -> Result<Config, Error> {
        Ok(Config {
            store: self.store()?,
            folder: self.folder.clone(),
            store_delay: Duration::from_millis(self.store_delay_ms),
            throughput_units: self.throughput_units,
            partitions: self.partitions,
            activities: self.activities,
            sample: self.sample,
            node: self.node,
            lease: Duration::from_secs(self.lease),
        })
    }

    fn store(&self) -> Result<StoreKind, Error> {
        let server = |url: &Option<String>, expected| {
            let missing = || Error::Setting { name: "store", value: self.store.clone(), expected };
            url.clone().map(StoreKind::Server).ok_or_else(missing)
        };
        match self.store.as_str() {
            "nats" => server(&self.nats, "--nats with the server's connection text beside it"),
            "postgres" => server(&self.postgres, "--postgres with the server's connection text beside it"),
            "postgres-classic" => {
                let each_step =
                    |url: &String| format!("{url}{}batching=each-step", if url.contains('?') { '&' } else { '?' });
                let url = self.postgres.as_ref().map(each_step);
                server(&url, "--postgres with the server's connection text beside it")
            }
            other => other.parse(),
        }
    }
}

impl Once {
    fn plan(&self) -> Result<Plan, Error> {
        Plan::new(self.workload, self.n, self.each, self.launch)
    }

    fn text(&self, figures: &Figures) -> Result<String, Error> {
        if !self.json {
            return Ok(format!("{}\n{}\n", Figures::header(), figures.row()));
        }
        Ok(serde_json::to_string(figures).map_err(Error::Json)? + "\n")
    }
}
