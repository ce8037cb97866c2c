//! Ports for services: below the kernel's ephemeral range, so that no outgoing connection takes a port between the
//! moment it is handed out and the moment its service binds it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};

use crate::Error;

const FROM: u16 = 18_000;
const TO: u16 = 31_999;

/// Hands out ports that are free on 127.0.0.1, each once.
#[derive(Debug)]
pub(crate) struct Ports {
    next: u16,
    given: BTreeSet<u16>,
}

impl Ports {
    /// Starts looking at a place that depends on the process, so that runs side by side seldom meet.
    pub(crate) fn new() -> Self {
        let span = u32::from(TO - FROM);
        Self { next: FROM + (std::process::id().wrapping_mul(97) % span) as u16, given: BTreeSet::new() }
    }

    /// A port that nothing listens on now. Errors when there is none.
    pub(crate) fn take(&mut self) -> Result<u16, Error> {
        for _ in FROM..=TO {
            let port = self.next;
            self.next = if port == TO { FROM } else { port + 1 };
            if !self.given.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
                self.given.insert(port);
                return Ok(port);
            }
        }
        Err(Error::NoPort { from: FROM, to: TO })
    }

    /// A port that the experiment fixes. Errors when something listens on it already: it would be measured instead.
    pub(crate) fn claim(&mut self, port: u16, service: &str) -> Result<u16, Error> {
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() || !self.given.insert(port) {
            return Err(Error::PortTaken { service: service.to_owned(), port });
        }
        Ok(port)
    }

    /// Gives back all ports.
    pub(crate) fn release_all(&mut self) {
        self.given.clear();
    }
}

impl Default for Ports {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_taken_ones_are_skipped() {
        let mut ports = Ports::new();
        let first = ports.take().unwrap();
        let blocked = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 1));
        let second = ports.take().unwrap();
        assert_ne!(first, second);
        if blocked.is_ok() {
            assert_ne!(second, first + 1);
        }
    }
}
