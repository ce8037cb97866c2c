//! `nginx:`: what can be written about an NGINX proxy.

use rustix::process::Signal;

use super::super::shape::{Map, Shape};
use super::proxy::{self, Routing};
use super::{BoundComponent, Entry, Protocol, READY_TIMEOUT, Url};

/// A proxy's settings in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nginx {
    /// Where it sends requests.
    pub routing: Routing,
}

pub(in crate::experiment) static SHAPE: Shape = Shape::Map(Map::of(&proxy::FIELDS));

pub(super) static ENTRY: Entry = Entry {
    key: "nginx",
    protocol: Protocol::Http,
    stop_signal: Signal::TERM,
    ready_timeout: READY_TIMEOUT,
    further_ports: 0,
    replicas: |_| None,
    url: |_| Url::http(),
    check_files: |_, _, _| {},
    read: |at, _, report| Some(BoundComponent::Nginx(Nginx { routing: proxy::routing(&at, report)? })),
};
