//! `haproxy:`: what can be written about an HAProxy: the keys of every proxy, a cookie that names the upstream, and how it
//! sees which upstreams are there.

use std::time::Duration;

use rustix::process::Signal;

use super::super::grammar::{POSITIVE_DURATION, default, optional};
use super::super::kind::Kind;
use super::super::mistake::Report;
use super::super::shape::{Field, Map, Scope, Shape};
use super::super::tree::At;
use super::super::{read, request};
use super::proxy::{self, Routing};
use super::{BoundComponent, Entry, Protocol, READY_TIMEOUT, Url};

/// A proxy's settings in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Haproxy {
    /// Where it sends requests.
    pub routing: Routing,
    /// The cookie in which it tells clients the upstream that they stay at.
    pub sticky: Option<String>,
    /// Connections that an upstream is given at once; what comes beyond waits in a queue.
    pub max_connections: Option<u32>,
    /// How it sees which upstreams are there.
    pub health: Health,
}

/// How upstreams are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Method and path of what they are asked; they only have to accept a connection without.
    pub request: Option<(String, String)>,
    /// From one look to the next.
    pub interval: Duration,
    /// Failures in a row until an upstream is left out.
    pub fall: u32,
    /// Successes in a row until it is taken back.
    pub rise: u32,
}

/// The most looks in a row that can be asked for.
const LOOKS_MAX: u64 = 100;

static LOOKS: Shape = Shape::Scalar(Kind::Whole(1, LOOKS_MAX), Scope::Parameters);
static CONNECTIONS: Shape = Shape::Scalar(Kind::Whole(1, 100_000), Scope::Parameters);

static HEALTH: Shape = Shape::Map(Map::of(&[
    optional(
        "request",
        &Shape::Scalar(Kind::Request, Scope::Parameters),
        "What each upstream is asked, such as `GET /health`: a status below 400 is well. Without it, it must accept a connection.",
    ),
    default("interval", &POSITIVE_DURATION, "1s", "From one look to the next."),
    default("fall", &LOOKS, "3", "So many failures in a row leave an upstream out."),
    default("rise", &LOOKS, "2", "So many successes in a row take it back."),
]));

static FIELDS: [Field; 9] = {
    let [upstreams, to, balance, key, cookie, keepalive] = proxy::FIELDS;
    let sticky = optional(
        "sticky",
        &proxy::COOKIE,
        "The name of a cookie that tells a client its upstream: chosen by `balance` once, kept from then on.",
    );
    let max_connections = optional(
        "max_connections",
        &CONNECTIONS,
        "How many connections each upstream is given at once. What comes beyond waits in the proxy's queue.",
    );
    let health = default("health", &HEALTH, "{}", "How it sees which upstreams are there.");
    [upstreams, to, balance, key, cookie, keepalive, sticky, max_connections, health]
};

pub(in crate::experiment) static SHAPE: Shape = Shape::Map(Map::of(&FIELDS));

pub(super) static ENTRY: Entry = Entry {
    key: "haproxy",
    protocol: Protocol::Http,
    stop_signal: Signal::TERM,
    ready_timeout: READY_TIMEOUT,
    further_ports: 0,
    replicas: |_| None,
    url: |_| Url::http(),
    check_files: |_, _, _| {},
    read: |at, _, report| settings(at, report).map(BoundComponent::Haproxy),
};

fn settings(at: At<'_>, report: &mut Report) -> Option<Haproxy> {
    let routing = proxy::routing(&at, report)?;
    let sticky = proxy::cookie(&at, "sticky", report)?;
    Some(Haproxy { routing, sticky, max_connections: read::whole(at, "max_connections"), health: health(at)? })
}

fn health(at: At<'_>) -> Option<Health> {
    let at = at.get("health")?;
    let request = match at.get("request") {
        Some(line) => {
            let (method, path) = request::line(line.text()?).ok()?;
            Some((method.to_owned(), path.to_owned()))
        }
        None => None,
    };
    Some(Health {
        request,
        interval: read::duration(at, "interval")?,
        fall: read::whole(at, "fall")?,
        rise: read::whole(at, "rise")?,
    })
}
