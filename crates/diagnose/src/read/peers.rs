//! Who is at an address that a service connected to.

use std::net::SocketAddr;

use narrows_model::call_graph::NAME_SERVER;
use narrows_model::evidence::TrialEvidence;
use narrows_model::run::ServiceInstance;
use narrows_model::series::names;

/// Port of name servers.
const NAME_SERVER_PORT: u16 = 53;

/// The other end of a connection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Peer<'a> {
    /// A replica of the trial.
    Replica(&'a ServiceInstance),
    /// Anything else, by name.
    Outside(String),
}

impl Peer<'_> {
    /// Name of the service, or of what is outside the trial.
    pub(crate) fn name(&self) -> &str {
        match self {
            Peer::Replica(instance) => &instance.service,
            Peer::Outside(name) => name,
        }
    }
}

/// The peer that a series names by [`names::NETWORK_PEER`]; `None` for the receiver of traces, which no request waits for.
pub(crate) fn peer<'a>(trial: &'a TrialEvidence, label: &str) -> Option<Peer<'a>> {
    let Ok(address) = label.parse::<SocketAddr>() else {
        let Some((service, replica)) = names::labelled_replica(label) else {
            return Some(Peer::Outside(label.to_owned()));
        };
        let is_it = |one: &&ServiceInstance| (one.service.as_str(), one.replica) == (service, replica);
        let outside = || Peer::Outside(service.to_owned());
        return Some(trial.services.iter().find(is_it).map_or_else(outside, Peer::Replica));
    };
    if is_receiver(trial, address.port()) {
        return None;
    }
    let port = address.ip().is_loopback().then_some(address.port());
    Some(match trial.reached_at(port) {
        Some(instance) => Peer::Replica(instance),
        None if address.port() == NAME_SERVER_PORT => Peer::Outside(NAME_SERVER.to_owned()),
        None => Peer::Outside(label.to_owned()),
    })
}

/// True if Narrows listens at a port, to receive traces.
fn is_receiver(trial: &TrialEvidence, port: u16) -> bool {
    let own = trial.series.iter().filter(|series| series.key.service == names::GENERATOR);
    let listeners = own.filter(|series| series.key.name == names::ACCEPT_QUEUE);
    listeners.filter_map(|series| series.key.labels.get(names::SERVER_PORT)).any(|at| at.parse() == Ok(port))
}

#[cfg(test)]
mod tests {
    use narrows_testkit::trial::{FIRST_PORT, TrialBuilder};

    use super::*;

    #[test]
    fn peers_are_services_name_servers_or_addresses() {
        let port = names::SERVER_PORT;
        let receiver = TrialBuilder::new("a").service("shop", None).labelled_series(
            names::ACCEPT_QUEUE,
            (names::GENERATOR, 0),
            &[(port, "4318")],
            |_| 0.0,
        );
        let trial = receiver.build();
        let name = |label: &str| peer(&trial, label).map(|peer| peer.name().to_owned());
        assert_eq!(name(&format!("127.0.0.1:{FIRST_PORT}")).as_deref(), Some("shop"));
        assert_eq!(name(&format!("[::1]:{FIRST_PORT}")).as_deref(), Some("shop"));
        assert_eq!(name(&format!("10.0.0.5:{FIRST_PORT}")), Some(format!("10.0.0.5:{FIRST_PORT}")), "another machine");
        assert_eq!(name("10.0.0.2:53").as_deref(), Some(NAME_SERVER));
        assert!(matches!(peer(&trial, "shop[0]"), Some(Peer::Replica(one)) if one.service == "shop"));
        assert_eq!(name("bank[1]").as_deref(), Some("bank"), "a service elsewhere");
        assert_eq!(name(names::OTHER_PEERS).as_deref(), Some(names::OTHER_PEERS));
        assert_eq!((name("127.0.0.1:4318"), name("172.17.0.1:4318")), (None, None), "the receiver of traces");
    }
}
