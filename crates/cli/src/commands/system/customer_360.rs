//! `narrows system customer-360 SERVICE`: the services of the chain from customers to names.

use std::time::Duration;

use narrows_customer_360::{
    BaseUrls, Choice, Error, NameConfig, Service, UpstreamConfig, customer, open_name, person, stop_signal,
};

use super::{Port, milliseconds};
use crate::stderr;

#[derive(Debug, clap::Args)]
pub(super) struct Customer360 {
    #[command(subcommand)]
    service: Customer360Service,
}

#[derive(Debug, clap::Subcommand)]
enum Customer360Service {
    /// Makes customers out of people
    Customer(Customer),
    /// Makes people out of names
    Person(Person),
    /// Reads names from PostgreSQL
    Name(Name),
}

#[derive(Debug, clap::Args)]
struct Customer {
    #[command(flatten)]
    port: Port,
    /// The replicas of the service of people, with commas between
    #[arg(long, value_name = "URLS")]
    person: BaseUrls,
    #[command(flatten)]
    chain: Chain,
}

#[derive(Debug, clap::Args)]
struct Person {
    #[command(flatten)]
    port: Port,
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
    patience_ms: Duration,
}

#[derive(Debug, clap::Args)]
struct Name {
    #[command(flatten)]
    port: Port,
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
    patience_ms: Duration,
}

impl Customer360 {
    pub(super) fn port(&self) -> Option<u16> {
        match &self.service {
            Customer360Service::Customer(customer) => customer.port.port,
            Customer360Service::Person(person) => person.port.port,
            Customer360Service::Name(name) => name.port.port,
        }
    }

    /// Runs the service until it is asked to end.
    pub(super) async fn run(&self, port: u16) -> Result<(), Error> {
        let stop = stop_signal()?;
        let (name, opened) = self.open(port).await?;
        stderr::say(&format!("{name} listens on http://{}", opened.address()));
        opened.run(stop).await;
        Ok(())
    }

    async fn open(&self, port: u16) -> Result<(&'static str, Service), Error> {
        Ok(match &self.service {
            Customer360Service::Customer(Customer { person, chain, .. }) => {
                ("customer", customer::open(port, chain.upstream(person)).await?)
            }
            Customer360Service::Person(Person { name, chain, .. }) => {
                ("person", person::open(port, chain.upstream(name)).await?)
            }
            Customer360Service::Name(name) => ("name", open_name(port, &name.config()).await?),
        })
    }
}

impl Chain {
    fn upstream(&self, replicas: &BaseUrls) -> UpstreamConfig {
        let choice = if self.affinity { Choice::Affinity(self.replica) } else { Choice::RoundRobin };
        UpstreamConfig { replicas: replicas.clone(), choice, patience: self.patience_ms }
    }
}

impl Name {
    fn config(&self) -> NameConfig {
        NameConfig {
            url: self.database.clone(),
            connections: self.connections,
            in_flight: self.in_flight,
            wait: self.wait_ms,
            patience: self.patience_ms,
        }
    }
}
