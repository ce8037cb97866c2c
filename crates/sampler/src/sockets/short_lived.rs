//! Connections that open and close between two samples.
//!
//! The kernel counts all connections that are opened in a network namespace, but not whose they are. Those that no sample
//! met are shared among the peers of the replicas, and those of other programs, in proportion to the short-lived
//! connections that samples did meet. This assumes that these live equally long. Some of these had closed before their
//! owner could be looked up: they count for the replicas that were met at the same peer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::tally::Peers;

/// Weight of the short-lived connections of one point at the next: of few, several points have some.
const FADING: f64 = 0.8;
/// Weight below which connections are forgotten: that of one, ten points later.
const WEIGHT_MIN: f64 = 0.1;
/// Peers of other programs, counted separately, at most.
const PEERS_MAX: usize = 1024;
/// Stands for all peers beyond these.
const OTHER_PEERS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Short-lived connections that samples met.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ShortLived {
    /// Since the last point.
    new: f64,
    /// With those of earlier points, which fade.
    weight: f64,
    /// Requests over those of the weight.
    requests: f64,
}

impl ShortLived {
    pub(super) fn add(&mut self, requests: u32) {
        self.new += 1.0;
        self.weight += 1.0;
        self.requests += f64::from(requests);
    }

    pub(super) fn end_point(&mut self) {
        let faded = Self { new: 0.0, weight: self.weight * FADING, requests: self.requests * FADING };
        *self = if faded.weight < WEIGHT_MIN { Self::default() } else { faded };
    }

    /// Requests over a connection, mean.
    pub(super) fn requests_each(self) -> f64 {
        if self.weight > 0.0 { self.requests / self.weight } else { 0.0 }
    }
}

/// Short-lived connections whose owner is no replica, or had closed them when it was looked up, by peer.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    peers: HashMap<SocketAddr, ShortLived>,
}

impl Strangers {
    pub(super) fn add(&mut self, peer: SocketAddr) {
        let is_beyond = self.peers.len() >= PEERS_MAX && !self.peers.contains_key(&peer);
        self.peers.entry(if is_beyond { OTHER_PEERS } else { peer }).or_default().add(0);
    }

    /// Shares `missed` connections, and strangers' connections to the same peers, among the peers of replicas.
    pub(super) fn share<'r>(&mut self, missed: u64, replicas: impl Iterator<Item = &'r mut Peers>) {
        let mut replicas: Vec<&mut Peers> = replicas.collect();
        let mut of_replicas: HashMap<SocketAddr, f64> = HashMap::new();
        let mut all: f64 = self.peers.values().map(|met| met.weight).sum();
        for peers in &mut replicas {
            for (peer, tally) in peers.tallies() {
                all += tally.short_lived.weight;
                *of_replicas.entry(peer.unwrap_or(OTHER_PEERS)).or_default() += tally.short_lived.weight;
            }
        }
        let each = if all > 0.0 { missed as f64 / all } else { 0.0 };
        for (peer, tally) in replicas.into_iter().flat_map(Peers::tallies) {
            let strangers = peer.and_then(|peer| self.peers.get(&peer)).copied().unwrap_or_default();
            let weight = of_replicas[&peer.unwrap_or(OTHER_PEERS)];
            if weight > 0.0 {
                let unassigned = strangers.new + each * (weight + strangers.weight);
                tally.add_missed(unassigned * tally.short_lived.weight / weight);
            }
        }
        self.peers.values_mut().for_each(ShortLived::end_point);
        self.peers.retain(|_, met| met.weight > 0.0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DEPOT: u16 = 4443;
    const BANK: u16 = 5432;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    /// A replica that was met with so many short-lived connections to a peer, of one request each.
    fn meet(peers: &mut Peers, port: u16, connections: usize) {
        let tally = peers.tally(at(port));
        for _ in 0..connections {
            tally.add_opened();
            tally.add_closed(1, Some(1));
        }
    }

    /// Connections opened and requests per second, by port.
    fn rates(peers: &mut Peers) -> Vec<(String, f64, f64)> {
        let figures = peers.take(1, Duration::from_secs(1), |peer| peer.to_string());
        figures.into_iter().map(|(peer, figures)| (peer, figures.opened, figures.requests)).collect()
    }

    fn of(port: u16, rate: f64) -> (String, f64, f64) {
        (at(port).to_string(), rate, rate)
    }

    #[test]
    fn connections_that_no_sample_met_are_shared_by_those_met() {
        let (mut shop, mut office, mut strangers) = (Peers::default(), Peers::default(), Strangers::default());
        meet(&mut shop, DEPOT, 3);
        meet(&mut shop, BANK, 1);
        meet(&mut office, BANK, 1);
        (0..5).for_each(|_| strangers.add(at(9000)));
        strangers.share(100, [&mut shop, &mut office].into_iter());
        assert_eq!(rates(&mut shop), [of(DEPOT, 3.0 + 30.0), of(BANK, 1.0 + 10.0)]);
        assert_eq!(rates(&mut office), [of(BANK, 1.0 + 10.0)]);
    }

    #[test]
    fn connections_that_closed_before_their_owner_was_found_count_for_those_met_at_the_peer() {
        let (mut shop, mut strangers) = (Peers::default(), Strangers::default());
        meet(&mut shop, DEPOT, 2);
        (0..6).for_each(|_| strangers.add(at(DEPOT)));
        strangers.share(80, [&mut shop].into_iter());
        assert_eq!(rates(&mut shop), [of(DEPOT, 2.0 + 6.0 + 80.0)]);
    }

    #[test]
    fn points_without_any_that_were_met_share_as_those_before() {
        let (mut shop, mut strangers) = (Peers::default(), Strangers::default());
        strangers.share(50, [&mut shop].into_iter());
        assert_eq!(rates(&mut shop), [], "no replica opened one");
        meet(&mut shop, DEPOT, 1);
        strangers.share(49, [&mut shop].into_iter());
        assert_eq!(rates(&mut shop), [of(DEPOT, 50.0)]);
        strangers.share(50, [&mut shop].into_iter());
        assert_eq!(rates(&mut shop), [of(DEPOT, 50.0)]);
        (0..10).for_each(|_| shop.tally(at(DEPOT)).short_lived.end_point());
        strangers.share(50, [&mut shop].into_iter());
        assert_eq!(rates(&mut shop), [of(DEPOT, 0.0)], "too long ago");
    }

    #[test]
    fn peers_of_strangers_are_bounded_and_forgotten() {
        let mut strangers = Strangers::default();
        (0..PEERS_MAX as u16 + 9).for_each(|port| strangers.add(at(port)));
        assert_eq!(strangers.peers.len(), PEERS_MAX + 1);
        (0..40).for_each(|_| strangers.share(0, std::iter::empty()));
        assert_eq!(strangers.peers.len(), 0);
    }
}
