//! `narrows system NAME SERVICE`: one service of a reference system, as a process of its own.
//!
//! Every service runs on one thread, so that its processor time has a ceiling that load can reach. What is exported to
//! OpenTelemetry has a thread besides.

use std::time::Duration;

use narrows_drone_delivery::{
    BaseUrl, Error, Parallelism, Routing, Service, delivery, dronescheduler, gateway, package, stop_signal,
};

use crate::exit::{Exit, Failure, with_causes};
use crate::{Outcome, stderr};

mod customer_360;
mod hello_cities;
mod micron;

/// The longest time that a setting may name.
const MILLISECONDS_MAX: f64 = 600_000.0;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    system: System,
}

#[derive(Debug, clap::Subcommand)]
enum System {
    /// Customers out of three services in a chain, the last of them over PostgreSQL
    #[command(name = "customer-360")]
    Customer360(customer_360::Customer360),
    /// Invoices for drone deliveries: a gateway over three services, one of them over a document store
    DroneDelivery(DroneDelivery),
    /// Durable orchestrations over the engine's log or over SQLite: one service, or one workload and its figures
    HelloCities(hello_cities::HelloCities),
    /// Owners with their items, and transfers between items, over MariaDB
    Micron(micron::Micron),
}

#[derive(Debug, clap::Args)]
struct DroneDelivery {
    #[command(subcommand)]
    service: DroneDeliveryService,
}

#[derive(Debug, clap::Subcommand)]
enum DroneDeliveryService {
    /// Makes an invoice out of the three other services
    Gateway(Gateway),
    /// Counts deliveries
    Delivery(Stub),
    /// Weighs packages
    Package(Stub),
    /// Sums what drones flew, over the document store
    Dronescheduler(Dronescheduler),
}

#[derive(Debug, clap::Args)]
struct Port {
    /// The port on 127.0.0.1; 0 is any free one [default: the variable PORT, or 0]
    #[arg(long)]
    port: Option<u16>,
}

#[derive(Debug, clap::Args)]
struct Gateway {
    #[command(flatten)]
    port: Port,
    /// The service of deliveries
    #[arg(long, value_name = "URL")]
    delivery: BaseUrl,
    /// The service of packages
    #[arg(long, value_name = "URL")]
    package: BaseUrl,
    /// The service of drones
    #[arg(long, value_name = "URL")]
    dronescheduler: BaseUrl,
    /// Milliseconds before a failed call is made again; twice that before the third attempt
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = milliseconds)]
    retry_delay_ms: Duration,
}

#[derive(Debug, clap::Args)]
struct Stub {
    #[command(flatten)]
    port: Port,
    /// Milliseconds that each answer takes, in place of a platform
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    delay_ms: Duration,
}

#[derive(Debug, clap::Args)]
struct Dronescheduler {
    #[command(flatten)]
    port: Port,
    /// The document store
    #[arg(long, value_name = "URL")]
    store: BaseUrl,
    /// The store's database
    #[arg(long, value_name = "NAME", default_value = "dronedelivery")]
    database: String,
    /// The container within it
    #[arg(long, value_name = "NAME", default_value = "utilization")]
    container: String,
    /// Partitions that a query asks at a time: 0 one after the other, -1 all at once
    #[arg(long, value_name = "N", default_value = "-1", allow_negative_numbers = true)]
    max_parallelism: Parallelism,
    /// Whether a query goes to the owner's partition only
    #[arg(long, value_name = "true|false", default_value = "false", action = clap::ArgAction::Set)]
    use_partition_key: bool,
    /// Milliseconds that each request takes without work, in place of a platform
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    platform_delay_ms: Duration,
    /// Milliseconds of processor time that each request uses
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    cpu_work_ms: Duration,
    /// Requests to the store at a time
    #[arg(long, value_name = "N", default_value_t = 50)]
    max_connections: usize,
    /// Documents of one query that are held before their partition's turn
    #[arg(long, value_name = "N", default_value_t = 100)]
    prefetch: usize,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start a runtime: {error}")))?;
    match &arguments.system {
        System::Customer360(customer_360) => {
            let port = port_of(customer_360.port())?;
            runtime.block_on(customer_360.run(port)).map_err(|error| Failure::new(with_causes(&error)))?;
        }
        System::DroneDelivery(DroneDelivery { service }) => {
            let port = port_of(service.port())?;
            runtime.block_on(service.run(port)).map_err(|error| Failure::new(with_causes(&error)))?;
        }
        System::HelloCities(hello_cities) => return hello_cities.execute(&runtime),
        System::Micron(micron) => {
            let port = port_of(micron.port())?;
            runtime.block_on(micron.run(port)).map_err(|error| Failure::new(with_causes(&error)))?;
        }
    }
    Ok(Exit::Fine)
}

/// The port that was given, or that of the environment.
fn port_of(given: Option<u16>) -> Result<u16, Failure> {
    match (given, std::env::var("PORT")) {
        (Some(port), _) => Ok(port),
        (None, Ok(text)) if !text.is_empty() => text
            .parse()
            .map_err(|_| Failure::new(format!("the variable PORT is {text:?}, expected a port from 0 to 65535"))),
        (None, _) => Ok(0),
    }
}

impl DroneDeliveryService {
    fn port(&self) -> Option<u16> {
        match self {
            Self::Gateway(gateway) => gateway.port.port,
            Self::Delivery(stub) | Self::Package(stub) => stub.port.port,
            Self::Dronescheduler(scheduler) => scheduler.port.port,
        }
    }

    /// Runs the service until it is asked to end.
    async fn run(&self, port: u16) -> Result<(), Error> {
        let stop = stop_signal()?;
        let (name, opened) = self.open(port).await?;
        stderr::say(&format!("{name} listens on http://{}", opened.address()));
        opened.run(stop).await;
        Ok(())
    }

    async fn open(&self, port: u16) -> Result<(&'static str, Service), Error> {
        Ok(match self {
            Self::Gateway(gateway) => ("gateway", gateway::open(port, &gateway.config()).await?),
            Self::Delivery(stub) => ("delivery", delivery::open(port, stub.delay_ms).await?),
            Self::Package(stub) => ("package", package::open(port, stub.delay_ms).await?),
            Self::Dronescheduler(scheduler) => {
                ("dronescheduler", dronescheduler::open(port, scheduler.config()).await?)
            }
        })
    }
}

impl Gateway {
    fn config(&self) -> gateway::Config {
        gateway::Config {
            delivery: self.delivery.clone(),
            package: self.package.clone(),
            dronescheduler: self.dronescheduler.clone(),
            retry_delay: self.retry_delay_ms,
        }
    }
}

impl Dronescheduler {
    fn config(&self) -> dronescheduler::Config {
        dronescheduler::Config {
            store: self.store.clone(),
            database: self.database.clone(),
            container: self.container.clone(),
            parallelism: self.max_parallelism,
            routing: if self.use_partition_key { Routing::PartitionKey } else { Routing::EveryRange },
            platform_delay: self.platform_delay_ms,
            cpu_work: self.cpu_work_ms,
            connections_max: self.max_connections,
            prefetch_max: self.prefetch,
        }
    }
}

/// Reads a number of milliseconds, which may have a fraction.
fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=MILLISECONDS_MAX).contains(number));
    number
        .map(|number| Duration::from_secs_f64(number / 1_000.0))
        .ok_or_else(|| format!("expected a number from 0 to {MILLISECONDS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_may_have_a_fraction_and_are_bounded() {
        assert_eq!(milliseconds("10.2"), Ok(Duration::from_micros(10_200)));
        assert_eq!(milliseconds("0"), Ok(Duration::ZERO));
        for wrong in ["", "x", "-1", "inf", "NaN", "600001", "1ms"] {
            assert!(milliseconds(wrong).is_err(), "{wrong}");
        }
    }
}
