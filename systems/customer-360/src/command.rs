//! `narrows system customer-360 SERVICE`: the services of the chain from customers to names.

use std::time::Duration;

use narrows_serving::stop_signal;
use narrows_system::{BoundService, CommandOutcome, ListenArguments, milliseconds};

use crate::spring::SpringService;
use crate::{BaseUrls, Choice, Error, NameConfig, UpstreamConfig, customer, open_name, person};

/// Customers out of three services in a chain, the last of them over PostgreSQL
#[derive(Debug, clap::Args)]
pub struct Command {
    #[command(subcommand)]
    service: Service,
}

#[derive(Debug, clap::Subcommand)]
enum Service {
    /// Makes customers out of people
    Customer(Customer),
    /// Makes people out of names
    Person(Person),
    /// Reads names from PostgreSQL
    Name(Name),
}

/// Implementation of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Stack {
    /// This program
    Narrows,
    /// Spring Boot, as in the published benchmark: needs a JDK and Maven, which builds it once. Of the other settings it
    /// has the address and port, the service that it calls and the database
    Spring,
}

/// Settings of every service's process.
#[derive(Debug, clap::Args)]
struct Process {
    #[command(flatten)]
    listen: ListenArguments,
    /// Implementation of the service
    #[arg(long, value_name = "STACK", default_value = "narrows")]
    stack: Stack,
}

#[derive(Debug, clap::Args)]
struct Customer {
    #[command(flatten)]
    process: Process,
    /// The replicas of the service of people, with commas between
    #[arg(long, value_name = "URLS")]
    person: BaseUrls,
    #[command(flatten)]
    chain: Chain,
}

#[derive(Debug, clap::Args)]
struct Person {
    #[command(flatten)]
    process: Process,
    /// The replicas of the service of names, with commas between
    #[arg(long, value_name = "URLS")]
    name: BaseUrls,
    #[command(flatten)]
    chain: Chain,
}

/// How the next service of the chain is asked.
#[derive(Debug, clap::Args)]
struct Chain {
    /// Whether replica k asks replica k of the next service, modulo how many there are, instead of each in turn
    #[arg(long, value_name = "true|false", default_value = "false", action = clap::ArgAction::Set)]
    affinity: bool,
    /// The number of this replica, from 0
    #[arg(long, value_name = "K", default_value_t = 0)]
    replica: usize,
    /// Milliseconds that a call may take
    #[arg(long, value_name = "MS", default_value = "5000", value_parser = milliseconds)]
    timeout_ms: Duration,
}

#[derive(Debug, clap::Args)]
struct Name {
    #[command(flatten)]
    process: Process,
    /// The database, postgres://USER@HOST:PORT/DATABASE
    #[arg(long, value_name = "URL")]
    database: String,
    /// Connections to it
    #[arg(long, value_name = "N", default_value_t = 2)]
    connections: usize,
    /// Queries under way at a time on all connections together; as many as connections is one on each
    #[arg(long, value_name = "N", default_value_t = 64)]
    in_flight: usize,
    /// Milliseconds that a query waits when that many are under way
    #[arg(long, value_name = "MS", default_value = "1000", value_parser = milliseconds)]
    wait_ms: Duration,
    /// Milliseconds that a query may take
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = milliseconds)]
    timeout_ms: Duration,
}

impl Command {
    /// Opens the service, or replaces this process by it if it is not part of this program. It ends at SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// [`Error`] if it cannot listen there, a setting is outside its range, or the stack's programs are missing.
    pub async fn run(self) -> Result<CommandOutcome, Error> {
        if let Some(spring) = self.service.spring()? {
            match spring.run()? {}
        }
        let stop = stop_signal()?;
        let (name, service) = match &self.service {
            Service::Customer(customer) => {
                let listen = customer.process.listen.resolve()?;
                ("customer", customer::open(listen, customer.chain.upstream(&customer.person)).await?)
            }
            Service::Person(person) => {
                let listen = person.process.listen.resolve()?;
                ("person", person::open(listen, person.chain.upstream(&person.name)).await?)
            }
            Service::Name(name) => ("name", open_name(name.process.listen.resolve()?, &name.config()).await?),
        };
        let address = service.address();
        Ok(CommandOutcome::Service(BoundService::new(name, address, service.run(stop))))
    }
}

impl Service {
    /// The service in Spring Boot; `None` if this program's is to run.
    fn spring(&self) -> Result<Option<SpringService>, Error> {
        let is_spring = |process: &Process| process.stack == Stack::Spring;
        Ok(Some(match self {
            Self::Customer(customer) if is_spring(&customer.process) => {
                SpringService::over_service("customer", &customer.process.listen.resolve()?, &customer.person)?
            }
            Self::Person(person) if is_spring(&person.process) => {
                SpringService::over_service("person", &person.process.listen.resolve()?, &person.name)?
            }
            Self::Name(name) if is_spring(&name.process) => {
                SpringService::over_database(&name.process.listen.resolve()?, &name.database)?
            }
            _ => return Ok(None),
        }))
    }
}

impl Chain {
    fn upstream(&self, replicas: &BaseUrls) -> UpstreamConfig {
        let choice = if self.affinity { Choice::Affinity(self.replica) } else { Choice::RoundRobin };
        UpstreamConfig { replicas: replicas.clone(), choice, timeout: self.timeout_ms }
    }
}

impl Name {
    fn config(&self) -> NameConfig {
        NameConfig {
            url: self.database.clone(),
            connections: self.connections,
            in_flight: self.in_flight,
            wait: self.wait_ms,
            timeout: self.timeout_ms,
        }
    }
}
