//! Result of a system's arguments.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

/// Result of a system's arguments.
#[derive(Debug)]
pub enum CommandOutcome {
    /// A service that has its port: the caller announces it and runs it.
    Service(BoundService),
    /// A finished piece of work: the caller prints its result.
    Text(String),
}

/// A service that has its port and does not respond yet.
pub struct BoundService {
    name: &'static str,
    address: SocketAddr,
    running: Pin<Box<dyn Future<Output = ()>>>,
}

impl BoundService {
    /// The service called `name` that listens on `address`. `running` serves until the process is signalled to end.
    pub fn new(name: &'static str, address: SocketAddr, running: impl Future<Output = ()> + 'static) -> Self {
        Self { name, address, running: Box::pin(running) }
    }

    /// Serves until the process is signalled to end.
    pub async fn run(self) {
        self.running.await;
    }
}

impl fmt::Display for BoundService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} listens on http://{}", self.name, self.address)
    }
}

impl fmt::Debug for BoundService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BoundService").field("name", &self.name).field("address", &self.address).finish()
    }
}
