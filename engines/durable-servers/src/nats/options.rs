//! Options: the servers and the hub on them, from a text such as `nats://user:password@host:4222/orders?replicas=3`.

use std::time::Duration;

use narrows_durable::store::{Location, StoreError};
use narrows_nats::{AddressParts, NatsAddress};

use crate::calls::refused;
use crate::names::check_hub_name;

const HUB: &str = "main";
const REPLICAS_MAX: usize = 5;
const EXPECTED: &str = "expected nats://user:password@host:port/hub?replicas=1";

/// How a hub on NATS JetStream is used.
#[derive(Clone, Debug)]
pub struct NatsStoreOptions {
    /// On how many servers each message is kept, 1 to 5 and no more than the cluster has. Fixed when the hub is created.
    pub replicas: usize,
    /// How long one request may take.
    pub call_timeout: Duration,
    /// How long a call is tried again when the server does not respond.
    pub retry_timeout: Duration,
}

impl Default for NatsStoreOptions {
    fn default() -> Self {
        Self { replicas: 1, call_timeout: Duration::from_secs(5), retry_timeout: Duration::from_secs(10) }
    }
}

/// Where a hub is.
pub(super) struct Address {
    pub(super) nats: NatsAddress,
    pub(super) hub: String,
}

impl Address {
    /// Reads the text. Errors show nothing of it, since any part may belong to the password.
    pub(super) fn parse(url: &str, options: &mut NatsStoreOptions) -> Result<Self, StoreError> {
        let place = || Location::Remote { server: "NATS".to_owned(), what: "the connection text".to_owned() };
        let failed = |what: String| refused("open", place(), what);
        let AddressParts { address: nats, path, options: further } = AddressParts::parse(url).map_err(failed)?;
        let hub = if path.is_empty() { HUB.to_owned() } else { path };
        check_hub_name(&hub).map_err(failed)?;
        for (name, number) in further {
            if name != "replicas" {
                return Err(failed(format!("an unknown option, {EXPECTED}")));
            }
            options.replicas = number.parse().unwrap_or(0);
        }
        if !(1..=REPLICAS_MAX).contains(&options.replicas) {
            return Err(failed(format!("`replicas` is not a number from 1 to {REPLICAS_MAX}, {EXPECTED}")));
        }
        Ok(Self { nats, hub })
    }

    /// The servers and the hub, for people.
    pub(super) fn server(&self) -> String {
        format!("{}, hub {}", self.nats, self.hub)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, String> {
        Address::parse(url, &mut NatsStoreOptions::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn servers_and_hub_are_found() {
        let address = parse("nats://me:secret@a,b:4223/orders?replicas=3").expect("parsed");
        assert_eq!(address.server(), "NATS a:4222,b:4223, hub orders");
        assert_eq!(parse("nats://localhost").expect("parsed").hub, "main");
    }

    #[test]
    fn bad_texts_are_refused_without_showing_them() {
        for bad in [
            "http://me:secret@a/orders",
            "nats://me:secret@a/Orders",
            "nats://me:secret@a/orders?replicas=9",
            "nats://me:secret@a/orders?secret=9",
        ] {
            let error = parse(bad).map(|_| ()).expect_err(bad);
            assert!(error.contains("expected") && !error.contains("secret"), "{error}");
        }
    }
}
