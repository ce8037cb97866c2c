//! Sums over the connections of a replica, by peer, and the means and rates that they make.

use std::net::SocketAddr;
use std::time::Duration;

use narrows_model::series::names::OTHER_PEERS;

use super::rules::{Activity, Exchange};
use super::short_lived::ShortLived;

/// Peers of a replica that are named; all others are `other`.
pub(super) const PEERS_MAX: usize = 16;

/// The connections of a replica to one peer since the point before, or of its clients to one port.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) exchange: Exchange,
    /// Connections at the sample before, and at this one so far.
    pub(super) live_before: usize,
    live: usize,
    sums: Sums,
    pub(super) short_lived: ShortLived,
}

/// Sums since the last point.
#[derive(Debug, Default)]
struct Sums {
    connections: u64,
    one_way: u64,
    waiting: u64,
    undecided: u64,
    unread: u64,
    lookups: u64,
    opened: f64,
    requests: f64,
    sent_bytes: u64,
    received_bytes: u64,
    busy_us: u64,
}

/// Growth of a connection since the sample before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Growth {
    pub(super) requests: u32,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) busy_us: u64,
}

impl Tally {
    pub(super) fn begin_sample(&mut self) {
        self.live_before = std::mem::take(&mut self.live);
    }

    /// A connection at a sample; without activity, it carries data one way.
    pub(super) fn add(&mut self, activity: Option<Activity>, growth: Growth) {
        self.live += 1;
        let sums = &mut self.sums;
        sums.connections += 1;
        match activity {
            None => sums.one_way += 1,
            Some(Activity::Idle) => {}
            Some(Activity::Waiting) => sums.waiting += 1,
            Some(Activity::Undecided) => sums.undecided += 1,
            Some(Activity::Unread) => sums.unread += 1,
        }
        if activity.is_some() {
            sums.requests += f64::from(growth.requests);
            sums.busy_us += growth.busy_us;
        }
        sums.sent_bytes += growth.sent_bytes;
        sums.received_bytes += growth.received_bytes;
    }

    pub(super) fn add_lookup(&mut self) {
        self.sums.lookups += 1;
    }

    pub(super) fn add_opened(&mut self) {
        self.sums.opened += 1.0;
    }

    /// A connection that closed since the sample before: `last` is its request that was under way then, if one was.
    pub(super) fn add_closed(&mut self, last: u32, short_lived_requests: Option<u32>) {
        self.sums.requests += f64::from(last);
        if let Some(requests) = short_lived_requests {
            self.short_lived.add(requests);
        }
    }

    /// Connections that no sample met, or whose owner was not found. They are like the short-lived ones that were met.
    pub(super) fn add_missed(&mut self, connections: f64) {
        self.sums.opened += connections;
        self.sums.requests += connections * self.short_lived.requests_each();
    }

    /// Means and rates since they were taken last.
    pub(super) fn take(&mut self, samples: u32, elapsed: Duration) -> Figures {
        let sums = std::mem::take(&mut self.sums);
        self.short_lived.end_point();
        let mean = |sum: u64| sum as f64 / f64::from(samples);
        let rate = |sum: f64| sum / elapsed.as_secs_f64();
        Figures {
            connections: mean(sums.connections),
            one_way: mean(sums.one_way),
            opened: rate(sums.opened),
            outstanding: mean(sums.waiting + sums.lookups),
            undecided: mean(sums.undecided),
            unread: mean(sums.unread),
            requests: rate(sums.requests),
            sent_bytes: rate(sums.sent_bytes as f64),
            received_bytes: rate(sums.received_bytes as f64),
            busy: rate(sums.busy_us as f64 / 1e6),
        }
    }
}

/// Means over samples and rates per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Figures {
    pub(crate) connections: f64,
    pub(crate) one_way: f64,
    pub(crate) opened: f64,
    pub(crate) outstanding: f64,
    pub(crate) undecided: f64,
    pub(crate) unread: f64,
    pub(crate) requests: f64,
    pub(crate) sent_bytes: f64,
    pub(crate) received_bytes: f64,
    /// Seconds per second.
    pub(crate) busy: f64,
}

impl Figures {
    fn plus(&self, other: &Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            one_way: self.one_way + other.one_way,
            opened: self.opened + other.opened,
            outstanding: self.outstanding + other.outstanding,
            undecided: self.undecided + other.undecided,
            unread: self.unread + other.unread,
            requests: self.requests + other.requests,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received_bytes: self.received_bytes + other.received_bytes,
            busy: self.busy + other.busy,
        }
    }
}

/// The peers of a replica. The first are named, and stay so.
#[derive(Debug, Default)]
pub(super) struct Peers {
    named: Vec<(SocketAddr, Tally)>,
    others: Option<Tally>,
}

impl Peers {
    /// The sums of a peer.
    pub(super) fn tally(&mut self, peer: SocketAddr) -> &mut Tally {
        match self.place(peer) {
            Some(at) => &mut self.named[at].1,
            None => self.others.get_or_insert_default(),
        }
    }

    /// True if a peer is one of those that are named, which it becomes if there is room.
    pub(super) fn is_named(&mut self, peer: SocketAddr) -> bool {
        self.place(peer).is_some()
    }

    fn place(&mut self, peer: SocketAddr) -> Option<usize> {
        let known = self.named.iter().position(|(named, _)| *named == peer);
        if known.is_none() && self.named.len() < PEERS_MAX {
            self.named.push((peer, Tally::default()));
            return Some(self.named.len() - 1);
        }
        known
    }

    /// The sums by peer; without one, those of all others.
    pub(super) fn tallies(&mut self) -> impl Iterator<Item = (Option<SocketAddr>, &mut Tally)> {
        let named = self.named.iter_mut().map(|(peer, tally)| (Some(*peer), tally));
        named.chain(self.others.iter_mut().map(|tally| (None, tally)))
    }

    /// Figures of each peer by its name, which `name` gives; those of two with one name are added up.
    pub(super) fn take(
        &mut self,
        samples: u32,
        elapsed: Duration,
        name: impl Fn(SocketAddr) -> String,
    ) -> Vec<(String, Figures)> {
        let mut taken: Vec<(String, Figures)> = Vec::new();
        for (peer, tally) in self.tallies() {
            let (name, figures) = (peer.map_or_else(|| OTHER_PEERS.to_owned(), &name), tally.take(samples, elapsed));
            match taken.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum = sum.plus(&figures),
                None => taken.push((name, figures)),
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_become_means_and_rates() {
        let mut tally = Tally::default();
        let growth = Growth { requests: 3, sent_bytes: 100, received_bytes: 200, busy_us: 500_000 };
        for activity in [Some(Activity::Waiting), Some(Activity::Idle), Some(Activity::Waiting), None] {
            tally.begin_sample();
            tally.add(activity, growth);
        }
        tally.add_opened();
        tally.add_closed(1, Some(2));
        tally.add_missed(4.0);
        tally.add_lookup();
        let figures = tally.take(4, Duration::from_secs(2));
        let expected = Figures {
            connections: 1.0,
            one_way: 0.25,
            opened: 2.5,
            outstanding: 0.75,
            requests: 9.0,
            sent_bytes: 200.0,
            received_bytes: 400.0,
            busy: 0.75,
            ..Figures::default()
        };
        assert_eq!(figures, expected);
        assert_eq!(tally.take(1, Duration::from_secs(1)), Figures::default());
    }

    #[test]
    fn the_first_peers_are_named() {
        let mut peers = Peers::default();
        let peer = |port| SocketAddr::from(([10, 0, 0, 1], port));
        for port in 1..=PEERS_MAX as u16 + 2 {
            peers.tally(peer(port)).add_opened();
        }
        assert!(peers.is_named(peer(1)) && !peers.is_named(peer(17)));
        // The first two are one replica.
        let name = |peer: SocketAddr| if peer.port() <= 2 { "web[0]".to_owned() } else { peer.to_string() };
        let figures = peers.take(1, Duration::from_secs(1), name);
        assert_eq!(figures.len(), PEERS_MAX);
        assert_eq!(figures.first().map(|(name, figures)| (name.as_str(), figures.opened)), Some(("web[0]", 2.0)));
        assert_eq!(figures.last().map(|(name, figures)| (name.as_str(), figures.opened)), Some(("other", 2.0)));
    }
}
