//! Who reaches whom at which port, and what each service's address looks like.
//!
//! A service without a sidecar listens on the port that others know. With one, others know the sidecar's port, the
//! service listens on a private one, and what it is reported of other services are its sidecar's outbound listeners. All of
//! these ports are handed out together: first those that a component needs beside its own, then the sidecar's
//! private port, its port for mutual TLS if it has one, and an outbound listener for each replica of every other service.

use std::net::SocketAddr;

use super::sidecar::{self, ACCESS_LOG, CPUS, MEMORY_CAP, SIDECAR};
use crate::experiment::bound::{
    Bindings, BoundSidecar, Host, HostPort, Outbound, Replica, ReplicaPorts, Sibling, bracketed,
};
use crate::experiment::declaration::{Declaration, Protocol, Url};
use crate::experiment::document::at::At;

/// Facts about a service before it has ports.
#[derive(Debug)]
pub(crate) struct Needs {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) port: Option<u16>,
    /// Where its replicas are, one each, if somebody else started them.
    pub(crate) elsewhere: Vec<HostPort>,
    pub(crate) component: Option<&'static Declaration>,
    pub(crate) url: Url,
    pub(crate) sidecar: Option<Tls>,
}

/// Whether a sidecar has a port for mutual TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    Plain,
    Mutual,
}

impl Needs {
    fn protocol(&self) -> Protocol {
        self.component.map_or(Protocol::Http, |component| component.protocol)
    }

    fn component_ports(&self) -> usize {
        self.component.map_or(0, |component| component.further_ports)
    }
}

/// The replicas of all services in the order they are started.
pub(crate) fn replicas(needs: &[Needs]) -> Vec<Replica> {
    let of_service = |index: usize| {
        let (one, further) = (&needs[index], further_ports(needs, index));
        let replica = move |replica: u32| Replica {
            service: one.name.clone(),
            replica,
            port: one.port,
            elsewhere: one.elsewhere.get(replica as usize).cloned(),
            further,
        };
        (0..one.count).map(replica)
    };
    (0..needs.len()).flat_map(of_service).collect()
}

fn further_ports(needs: &[Needs], index: usize) -> usize {
    let one = &needs[index];
    let others =
        || needs.iter().filter(|other| other.name != one.name).map(|other| other.count as usize).sum::<usize>();
    one.component_ports()
        + match one.sidecar {
            None => 0,
            Some(Tls::Plain) => 1 + others(),
            Some(Tls::Mutual) => 2 + others(),
        }
}

/// The addresses of a trial.
#[derive(Debug)]
pub(crate) struct Network<'a> {
    needs: Vec<Needs>,
    pub(crate) bindings: &'a Bindings,
}

/// The ports of one replica by what they are for.
#[derive(Debug)]
struct Layout<'a> {
    /// Those of its component.
    component: Vec<u16>,
    /// The port that it listens on itself.
    own: u16,
    /// Its sidecar's port for mutual TLS.
    tls: Option<u16>,
    /// Its sidecar's outbound listeners: the other service, its replica, the port.
    outbound: Vec<(&'a Needs, u32, u16)>,
}

impl<'a> Network<'a> {
    /// The network of services whose replicas were handed these ports.
    pub(crate) fn new(needs: Vec<Needs>, bindings: &'a Bindings) -> Self {
        Self { needs, bindings }
    }

    /// The replicas of a service and their ports.
    pub(crate) fn of_service(&self, service: &str) -> impl Iterator<Item = &'a ReplicaPorts> {
        self.bindings.of_service(service)
    }

    /// The names of the services.
    pub(crate) fn services(&self) -> impl Iterator<Item = &str> {
        self.needs.iter().map(|needs| needs.name.as_str())
    }

    /// How many replicas a service has; `None` if there is no such service.
    pub(crate) fn count(&self, service: &str) -> Option<u32> {
        self.needs(service).map(|needs| needs.count)
    }

    /// Whether somebody else has started a service.
    pub(crate) fn is_elsewhere(&self, service: &str) -> bool {
        self.needs(service).is_some_and(|needs| !needs.elsewhere.is_empty())
    }

    fn needs(&self, service: &str) -> Option<&Needs> {
        self.needs.iter().find(|needs| needs.name == service)
    }

    fn layout(&self, of: &ReplicaPorts) -> Layout<'_> {
        let mut further = of.further.iter().copied();
        let needs = self.needs(&of.service);
        let component = further.by_ref().take(needs.map_or(0, Needs::component_ports)).collect();
        let Some(tls) = needs.and_then(|needs| needs.sidecar) else {
            return Layout { component, own: of.port, tls: None, outbound: Vec::new() };
        };
        let own = further.next().unwrap_or(of.port);
        let tls = if tls == Tls::Mutual { further.next() } else { None };
        let others = self.needs.iter().filter(|other| other.name != of.service);
        let others = others.flat_map(|other| (0..other.count).map(move |replica| (other, replica)));
        let outbound = others.zip(further).map(|((other, replica), port)| (other, replica, port)).collect();
        Layout { component, own, tls, outbound }
    }

    /// The port that a replica listens on itself.
    pub(crate) fn own_port(&self, of: &ReplicaPorts) -> u16 {
        self.layout(of).own
    }

    /// Hosts and ports of a service's replicas, as a replica of another service reaches them, or as the load does.
    fn places(&self, viewer: Option<&ReplicaPorts>, service: &str) -> Vec<HostPort> {
        let outbound = viewer.map(|viewer| self.layout(viewer).outbound).unwrap_or_default();
        let place = |other: &ReplicaPorts| {
            let listener =
                outbound.iter().find(|(needs, replica, _)| needs.name == service && *replica == other.replica);
            match listener {
                Some((.., port)) => HostPort { host: Host::loopback().name, port: *port },
                None => HostPort { host: other.host.name.clone(), port: other.port },
            }
        };
        self.of_service(service).map(place).collect()
    }

    /// A service's `host`, `port`, `url` or `urls` as a replica is told it, or as the load is (`None`).
    pub(crate) fn fact(&self, viewer: Option<&ReplicaPorts>, service: &str, fact: &str) -> Option<String> {
        let places = self.places(viewer, service);
        let form = &self.needs(service)?.url;
        let url = |place: &HostPort| format!("{}{place}{}", form.before, form.after);
        match fact {
            "host" => places.first().map(|place| bracketed(&place.host)),
            "port" => places.first().map(|place| place.port.to_string()),
            "url" => places.first().map(url),
            "urls" => Some(places.iter().map(url).collect::<Vec<_>>().join(",")),
            _ => None,
        }
    }

    /// The replicas of a replica's own service, itself included, in order.
    pub(crate) fn siblings(&self, of: &ReplicaPorts) -> Vec<Sibling> {
        let sibling = |one: &ReplicaPorts| {
            let layout = self.layout(one);
            Sibling { port: layout.own, further: layout.component }
        };
        self.of_service(&of.service).map(sibling).collect()
    }

    /// The ports of sidecars at which a replica is reached: those of its own, and the outbound listeners of others'.
    pub(crate) fn stand_in_ports(&self, of: &ReplicaPorts) -> Vec<u16> {
        let layout = self.layout(of);
        let advertised = (layout.own != of.port).then_some(of.port);
        let outbound = self.bindings.ports.iter().flat_map(|viewer| self.layout(viewer).outbound);
        let leads_here = outbound.filter(|(needs, replica, _)| needs.name == of.service && *replica == of.replica);
        advertised.into_iter().chain(layout.tls).chain(leads_here.map(|(.., port)| port)).collect()
    }

    /// The sidecar of a replica, as its service has it; `None` if it has none.
    pub(crate) fn sidecar(&self, of: &ReplicaPorts, service: At<'_>) -> Option<BoundSidecar> {
        let at = service.named(SIDECAR)?;
        let proxy = sidecar::proxy(at)?;
        let layout = self.layout(of);
        let has_tls = layout.tls.is_some();
        let outbound = layout.outbound.iter().filter_map(|(needs, replica, listen)| {
            let other = self.of_service(&needs.name).find(|other| other.replica == *replica)?;
            let secure = self.layout(other).tls.filter(|_| has_tls);
            Some(Outbound {
                service: needs.name.clone(),
                replica: *replica,
                listen: *listen,
                upstream: SocketAddr::new(other.host.address, secure.unwrap_or(other.port)),
                is_secure: secure.is_some(),
                protocol: needs.protocol(),
            })
        });
        Some(BoundSidecar {
            proxy,
            protocol: self.needs(&of.service)?.protocol(),
            port: of.port,
            tls_port: layout.tls,
            outbound: outbound.collect(),
            has_access_log: at.read(&ACCESS_LOG) == Some(true),
            cpus: at.read(&CPUS),
            memory_bytes: at.read(&MEMORY_CAP),
        })
    }
}
