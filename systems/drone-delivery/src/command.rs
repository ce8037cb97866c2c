//! `narrows system drone-delivery SERVICE`: the gateway and the services that it aggregates.

use std::time::Duration;

use narrows_serving::stop_signal;
use narrows_system::{BoundService, CommandOutcome, ListenArguments, milliseconds};

use crate::{BaseUrl, BaseUrls, Error, Parallelism, delivery, dronescheduler, gateway, package};

/// Invoices for drone deliveries: a gateway over three services, one of them over a document store
#[derive(Debug, clap::Args)]
pub struct Command {
    #[command(subcommand)]
    service: Service,
}

#[derive(Debug, clap::Subcommand)]
enum Service {
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
struct Gateway {
    #[command(flatten)]
    listen: ListenArguments,
    /// The service of deliveries
    #[arg(long, value_name = "URL")]
    delivery: BaseUrl,
    /// The service of packages
    #[arg(long, value_name = "URL")]
    package: BaseUrl,
    /// The service of drones; replicas, separated by commas, take turns
    #[arg(long, value_name = "URL[,URL…]")]
    dronescheduler: BaseUrls,
    /// Milliseconds before a failed call is made again; twice that before the third attempt
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = milliseconds)]
    retry_delay_ms: Duration,
}

#[derive(Debug, clap::Args)]
struct Stub {
    #[command(flatten)]
    listen: ListenArguments,
    /// Milliseconds that each response takes, in place of a platform
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    delay_ms: Duration,
}

#[derive(Debug, clap::Args)]
struct Dronescheduler {
    #[command(flatten)]
    listen: ListenArguments,
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
    /// Milliseconds that each request takes without work, in place of a platform
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    platform_delay_ms: Duration,
    /// Milliseconds of processor time that each request uses
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    cpu_work_ms: Duration,
    /// Threads that use this processor time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Requests to the store at a time
    #[arg(long, value_name = "N", default_value_t = 50)]
    max_connections: usize,
    /// Documents of one query that are held before their partition's turn
    #[arg(long, value_name = "N", default_value_t = 100)]
    prefetch: usize,
    /// How often a request that the store throttles is made again; 9 is the default of Microsoft's clients
    #[arg(long, value_name = "N", default_value_t = 9)]
    max_retries: u32,
}

impl Command {
    /// Opens the service. It ends at SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// [`Error`] if it cannot listen there, or a setting is outside its range.
    pub async fn run(self) -> Result<CommandOutcome, Error> {
        let stop = stop_signal()?;
        let (name, service) = match &self.service {
            Service::Gateway(gateway) => {
                ("gateway", gateway::open(gateway.listen.resolve()?, &gateway.config()).await?)
            }
            Service::Delivery(stub) => ("delivery", delivery::open(stub.listen.resolve()?, stub.delay_ms).await?),
            Service::Package(stub) => ("package", package::open(stub.listen.resolve()?, stub.delay_ms).await?),
            Service::Dronescheduler(scheduler) => {
                let listen = scheduler.listen.resolve()?;
                ("dronescheduler", dronescheduler::open(listen, scheduler.config()).await?)
            }
        };
        let address = service.address();
        Ok(CommandOutcome::Service(BoundService::new(name, address, service.run(stop))))
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
            platform_delay: self.platform_delay_ms,
            cpu_work: self.cpu_work_ms,
            threads: self.threads,
            connections_max: self.max_connections,
            prefetch_max: self.prefetch,
            retries_max: self.max_retries,
        }
    }
}
