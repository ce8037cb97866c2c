//! What a sidecar carries: a list of listeners and where each leads, the same for every kind of proxy.

use std::net::{Ipv4Addr, SocketAddr};

use crate::experiment::{BoundService, BoundSidecar, Outbound, Protocol};

/// A listener of a sidecar and where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hop {
    /// `inbound`, `inbound-tls`, `to person` or, from the second replica on, `to person[1]`.
    pub(super) name: String,
    pub(super) direction: Direction,
    pub(super) listen: SocketAddr,
    pub(super) protocol: Protocol,
    /// Whether callers have to show a certificate of the trial's authority.
    pub(super) accept_tls: bool,
    pub(super) upstream: SocketAddr,
    /// The service whose certificate the upstream must show; none where it is plain.
    pub(super) upstream_tls: Option<String>,
}

/// Whose requests a hop carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Others' to the replica.
    Inbound,
    /// The replica's to others.
    Outbound,
}

impl Hop {
    pub(super) fn is_tcp(&self) -> bool {
        self.protocol == Protocol::Tcp
    }
}

/// The hops of a replica's sidecar.
pub(super) fn of(service: &BoundService, sidecar: &BoundSidecar) -> Vec<Hop> {
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
        upstream: loopback(to.upstream),
        upstream_tls: to.is_secure.then(|| to.service.clone()),
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
