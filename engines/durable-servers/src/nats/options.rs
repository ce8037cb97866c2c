//! Options: the servers and the hub on them, from a text such as `nats://user:password@host:4222/orders?replicas=3`.

use std::time::Duration;

use narrows_durable::store::{Location, StoreError};
use percent_encoding::percent_decode_str;

use crate::calls::refused;
use crate::names::check_hub_name;

const HUB: &str = "main";
const REPLICAS_MAX: usize = 5;
const PORT: u16 = 4222;
const EXPECTED: &str = "expected nats://user:password@host:port/hub?replicas=1, with special characters of the password \
                        percent-encoded, and further servers after commas";

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
    /// `host:port` of each server.
    pub(super) servers: Vec<String>,
    pub(super) user: Option<(String, String)>,
    pub(super) hub: String,
}

impl Address {
    /// Reads the text. Errors show nothing of it, since any part may belong to the password.
    pub(super) fn parse(url: &str, options: &mut NatsStoreOptions) -> Result<Self, StoreError> {
        let place = || Location::Remote { server: "NATS".to_owned(), what: "the connection text".to_owned() };
        let failed = |what: &str| refused("open", place(), format!("{what}, {EXPECTED}"));
        let rest = url.strip_prefix("nats://").ok_or_else(|| failed("it does not begin with nats://"))?;
        let (credentials, rest) = rest.rsplit_once('@').map_or((None, rest), |(who, rest)| (Some(who), rest));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // NATS's own clients take a list of whole URLs.
        let rest = rest.replace(",nats://", ",");
        let (servers, hub) = rest.split_once('/').unwrap_or((&rest, ""));
        let hub = if hub.is_empty() { HUB } else { hub };
        check_hub_name(hub).map_err(|why| refused("open", place(), why))?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let Some(("replicas", number)) = pair.split_once('=') else { return Err(failed("an unknown option")) };
            options.replicas = number.parse().unwrap_or(0);
        }
        if !(1..=REPLICAS_MAX).contains(&options.replicas) {
            return Err(failed("`replicas` is not a number from 1 to 5"));
        }
        let servers: Option<Vec<String>> = servers.split(',').map(server).collect();
        let servers = servers.ok_or_else(|| failed("a server is not host:port"))?;
        let user = match credentials.map(|who| who.split_once(':').unwrap_or((who, ""))) {
            None => None,
            Some((user, password)) => match (decoded(user), decoded(password)) {
                (Some(user), Some(password)) => Some((user, password)),
                _ => return Err(failed("user or password is not UTF-8")),
            },
        };
        Ok(Self { servers, user, hub: hub.to_owned() })
    }

    /// The servers and the hub, for people.
    pub(super) fn server(&self) -> String {
        format!("NATS {}, hub {}", self.servers.join(","), self.hub)
    }
}

/// Percent-decoded text; `None` if it is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned())
}

/// `host:port` with the port filled in.
fn server(text: &str) -> Option<String> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_known) {
        return None;
    }
    let port_at = text.rfind(':').filter(|at| text.rfind(']').is_none_or(|end| end < *at));
    match port_at {
        None => Some(format!("{text}:{PORT}")),
        Some(at) => text[at + 1..].parse::<u16>().ok().filter(|_| at > 0).map(|_| text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, String> {
        Address::parse(url, &mut NatsStoreOptions::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn servers_hub_and_user_are_found() {
        let address = parse("nats://me:se%40cret@a,b:4223,[::1]:9/orders?replicas=3").expect("parsed");
        assert_eq!(address.servers, ["a:4222", "b:4223", "[::1]:9"]);
        assert_eq!(address.user, Some(("me".to_owned(), "se@cret".to_owned())));
        assert_eq!(address.server(), "NATS a:4222,b:4223,[::1]:9, hub orders");
        let whole = parse("nats://me:secret@a,nats://b:4223,nats://[::1]:9/orders").expect("parsed");
        assert_eq!((whole.servers, whole.hub), (address.servers, address.hub));
        let plain = parse("nats://localhost").expect("parsed");
        assert_eq!((plain.user, plain.hub.as_str()), (None, "main"));
    }

    #[test]
    fn bad_texts_are_refused_without_showing_them() {
        for bad in [
            "http://me:secret@a/orders",
            "nats://me:secret@/orders",
            "nats://me:secret@a:port/orders",
            "nats://me:secret@a/Orders",
            "nats://me:secret@a/orders?replicas=9",
            "nats://me:secret@a/orders?secret=9",
            "nats://me:%ffsecret@a/orders",
            "nats://me:secret@a b/orders",
        ] {
            let error = parse(bad).map(|_| ()).expect_err(bad);
            assert!(error.contains("expected") && !error.contains("secret"), "{error}");
        }
    }
}
