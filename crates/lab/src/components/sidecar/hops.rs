//! Traffic of a sidecar: a list of listeners and where each leads, the same for every kind of proxy.

use std::net::{Ipv4Addr, SocketAddr};

use crate::experiment::{BoundService, BoundSidecar, Outbound, Protocol};

/// A listener of a sidecar and where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::components) struct Hop {
    /// `inbound`, `inbound-tls`, `to person` or, from the second replica on, `to person[1]`.
    pub(in crate::components) name: String,
    pub(in crate::components) direction: Direction,
    pub(in crate::components) listen: SocketAddr,
    pub(in crate::components) protocol: Protocol,
    /// Whether callers have to show a certificate of the trial's authority.
    pub(in crate::components) accept_tls: bool,
    pub(in crate::components) upstream: SocketAddr,
    /// The service whose certificate the upstream must show; `None` where it is plain.
    pub(in crate::components) upstream_tls: Option<String>,
}

/// Whose requests a hop carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::components) enum Direction {
    /// Others' to the replica.
    Inbound,
    /// The replica's to others.
    Outbound,
}

impl Hop {
    pub(in crate::components) fn is_tcp(&self) -> bool {
        self.protocol == Protocol::Tcp
    }
}

/// The hops of a replica's sidecar.
pub(in crate::components) fn of(service: &BoundService, sidecar: &BoundSidecar) -> Vec<Hop> {
    let inbound = |name: &str, port, accept_tls| Hop {
        name: name.to_owned(),
        direction: Direction::Inbound,
        listen: loopback(port),
        protocol: sidecar.protocol,
        accept_tls,
        upstream: loopback(service.port),
        upstream_tls: None,
    };
    let mut hops = vec![inbound("inbound", sidecar.port, false)];
    hops.extend(sidecar.tls_port.map(|port| inbound("inbound-tls", port, true)));
    hops.extend(sidecar.outbound.iter().map(outbound));
    hops
}

fn outbound(to: &Outbound) -> Hop {
    let replica = if to.replica > 0 { format!("[{}]", to.replica) } else { String::new() };
    Hop {
        name: format!("to {}{replica}", to.service),
        direction: Direction::Outbound,
        listen: loopback(to.listen),
        protocol: to.protocol,
        accept_tls: false,
        upstream: to.upstream,
        upstream_tls: to.is_secure.then(|| to.service.clone()),
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
