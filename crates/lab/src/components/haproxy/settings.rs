//! `haproxy:`: what can be written about an HAProxy: the keys of every proxy, a cookie that names the upstream, and how it
//! sees which upstreams are there.

use std::time::Duration;

use crate::components::proxy::{self, Routing};
use crate::experiment::document::at::At;
use crate::experiment::error::Report;
use crate::experiment::grammar::key::{Key, Value, default, parameter};
use crate::experiment::grammar::kind::Whole;
use crate::experiment::grammar::shape::{Field, Map, Shape};
use crate::experiment::grammar::values::POSITIVE_DURATION;
use crate::experiment::load::request;

/// A proxy's settings in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Haproxy {
    /// Where it sends requests.
    pub(super) routing: Routing,
    /// The cookie in which it tells clients the upstream that they stay at.
    pub(super) sticky: Option<String>,
    /// Connections that an upstream is given at once; what comes beyond waits in a queue.
    pub(super) max_connections: Option<u32>,
    /// How it sees which upstreams are there.
    pub(super) health: Health,
}

/// How upstreams are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Health {
    /// Method and path of what they are asked; they only have to accept a connection without.
    pub(super) request: Option<(String, String)>,
    /// From one look to the next.
    pub(super) interval: Duration,
    /// Failures in a row until an upstream is left out.
    pub(super) fall: u32,
    /// Successes in a row until it is taken back.
    pub(super) rise: u32,
}

/// The most looks in a row that can be asked for.
const LOOKS_MAX: u64 = 100;

const LOOKS: Value<u32> = parameter(&Whole::new(1, LOOKS_MAX));

const REQUEST: Key<(String, String)> = Key::optional(
    "request",
    parameter(&request::REQUEST_LINE),
    "The health check of each upstream, such as `GET /health`; it passes with a status below 400. Without it, the \
     upstream must accept a connection.",
);

const INTERVAL: Key<Duration> = Key::default("interval", POSITIVE_DURATION, "1s", "The interval between checks.");

const FALL: Key<u32> = Key::default("fall", LOOKS, "3", "How many failures in a row take an upstream out.");

const RISE: Key<u32> = Key::default("rise", LOOKS, "2", "How many successes in a row put it back.");

const HEALTH: Field = default(
    "health",
    Shape::Map(Map::new(&[REQUEST.field, INTERVAL.field, FALL.field, RISE.field])),
    "{}",
    "How it checks which upstreams are up.",
);

const STICKY: Key<String> = Key::optional(
    "sticky",
    proxy::COOKIE_NAME,
    "The name of a cookie that keeps a client at its upstream: `balance` chooses the upstream once, and again \
     only when it is gone. Upstreams do not see the cookie.",
);

const MAX_CONNECTIONS: Key<u32> = Key::optional(
    "max_connections",
    parameter(&Whole::new(1, 100_000)),
    "How many connections each upstream gets at once. Further requests wait in the proxy's queue, for at most a \
     minute.",
);

static FIELDS: [Field; 9] = {
    let [upstreams, to, balance, key, cookie, keepalive] = proxy::FIELDS;
    [upstreams, to, balance, key, cookie, keepalive, STICKY.field, MAX_CONNECTIONS.field, HEALTH]
};

pub(super) static SHAPE: Shape = Shape::Map(Map::new(&FIELDS));

/// A proxy's settings. `None` after a reported error.
pub(super) fn from_file(at: At<'_>, report: &mut Report) -> Option<Haproxy> {
    let routing = proxy::routing(&at, report)?;
    let sticky = proxy::cookie(&at, &STICKY, report)?;
    Some(Haproxy { routing, sticky, max_connections: at.read(&MAX_CONNECTIONS), health: health(at)? })
}

fn health(at: At<'_>) -> Option<Health> {
    let at = at.get(&HEALTH)?;
    let request = if at.has(&REQUEST) { Some(at.read(&REQUEST)?) } else { None };
    Some(Health { request, interval: at.read(&INTERVAL)?, fall: at.read(&FALL)?, rise: at.read(&RISE)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::proxy::tests::errors_are_reported;
    use crate::components::proxy::{Balance, HashKey};
    use crate::experiment::tests::components::component;

    #[test]
    fn its_keys_are_those_of_every_proxy_and_its_own() {
        let written = "haproxy:
        upstreams: { shop: \"http://127.0.0.1:300,http://127.0.0.1:400\", nobody: \"http://127.0.0.1:9\" }
        to: shop
        balance: BALANCE
        key: [client_address, cookie]
        cookie: route
        sticky: at
        max_connections: 5
        health: { request: \"GET /health\", interval: 500ms, fall: 4 }";
        let bound = component(&written.replace("BALANCE", "hash"));
        let haproxy: &Haproxy = bound.settings_as();
        assert_eq!(haproxy.routing.upstreams, ["127.0.0.1:300", "127.0.0.1:400"]);
        assert_eq!(haproxy.routing.balance, Balance::Hash(vec![HashKey::ClientAddress, HashKey::Cookie]));
        assert_eq!((haproxy.sticky.as_deref(), haproxy.max_connections), (Some("at"), Some(5)));
        let request = Some(("GET".to_owned(), "/health".to_owned()));
        assert_eq!(haproxy.health, Health { request, interval: Duration::from_millis(500), fall: 4, rise: 2 });
        let bound = component(&written.replace("BALANCE", "least_conn"));
        assert_eq!(bound.settings_as::<Haproxy>().routing.balance, Balance::LeastConnections);
    }

    #[test]
    fn errors_are_reported_as_of_every_proxy() {
        errors_are_reported("haproxy");
    }
}
