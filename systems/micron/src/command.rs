//! `narrows system micron instance`: one instance of the service over MariaDB.

use std::time::Duration;

use narrows_serving::stop_signal;
use narrows_system::{BoundService, CommandOutcome, ListenArguments, milliseconds};

use crate::{Config, Error, MovedSession, Node, Queries, open};

/// Owners, their items, and transfers between items, over MariaDB
#[derive(Debug, clap::Args)]
pub struct Command {
    #[command(subcommand)]
    service: Service,
}

#[derive(Debug, clap::Subcommand)]
enum Service {
    /// Reads owners and their items, renames items, and transfers between them
    Instance(Instance),
}

#[derive(Debug, clap::Args)]
struct Instance {
    #[command(flatten)]
    listen: ListenArguments,
    /// The nodes of the database, mysql://USER@HOST:PORT/DATABASE, with commas between
    #[arg(long, value_name = "URLS", value_delimiter = ',', required = true)]
    database: Vec<Node>,
    /// The number of this instance, from 0: it uses the node of this number, modulo how many there are
    #[arg(long, value_name = "K", default_value_t = 0)]
    instance: usize,
    /// Handling of a session that comes from another instance: served or refused
    #[arg(long, value_name = "WHAT", default_value = "served")]
    moved_sessions: MovedSession,
    /// How owners come to their items: n-plus-one or joined
    #[arg(long, value_name = "HOW", default_value = "joined")]
    queries: Queries,
    /// How often a transaction is begun again after the database undid it
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// Connections to the node
    #[arg(long, value_name = "N", default_value_t = 10)]
    max_connections: usize,
    /// Milliseconds that a request waits for one of them
    #[arg(long, value_name = "MS", default_value = "5000", value_parser = milliseconds)]
    connection_wait_ms: Duration,
    /// Milliseconds that a page is good in the cache
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    cache_ttl_ms: Duration,
    /// Pages in the cache; 0 is no cache
    #[arg(long, value_name = "N", default_value_t = 0)]
    cache_entries: usize,
    /// Milliseconds that pass before each statement, in place of a network to the database
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    network_delay_ms: Duration,
}

impl Command {
    /// Opens the instance. It ends at SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// [`Error`] if it cannot listen there, or a setting is outside its range.
    pub async fn run(self) -> Result<CommandOutcome, Error> {
        let Service::Instance(instance) = &self.service;
        let listen = instance.listen.resolve()?;
        let stop = stop_signal()?;
        let service = open(listen, instance.config()).await?;
        let address = service.address();
        Ok(CommandOutcome::Service(BoundService::new("micron", address, service.run(stop))))
    }
}

impl Instance {
    fn config(&self) -> Config {
        Config {
            databases: self.database.clone(),
            instance: self.instance,
            moved: self.moved_sessions,
            queries: self.queries,
            retries_max: self.retries,
            connections_max: self.max_connections,
            connection_wait: self.connection_wait_ms,
            cache_ttl: self.cache_ttl_ms,
            cache_entries_max: self.cache_entries,
            network_delay: self.network_delay_ms,
        }
    }
}
