//! `few-clients`: replicas get uneven load, because hashing so few clients cannot spread it better.
//!
//! This finding is about the experiment. A balancer that keeps a client at its replica, by address or by cookie,
//! spreads clients, not requests. With a handful of clients, some replicas get several and some none; the real load has
//! thousands of clients and no such skew.
//!
//! The number of clients comes from three sources, in this order: addresses in the replicas' own spans, addresses that
//! the load is configured to use, and its users. If an address is seen at several replicas, the balancer does not go by
//! address. If addresses are only configured, or only users are known, each replica's share must be about that of a
//! whole number of clients. This excludes weights set on purpose, slow replicas and standbys.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::finding::evidence::few_clients::{self as evidence, Clients, ReplicaShare};
use narrows_model::finding::evidence::hot_partition::PlaceKind;
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind, Role};
use narrows_model::run::WindowKind;

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, exemplar};
use crate::read::Reading;
use crate::read::place_loads::{Group, Visit, groups};
use crate::stats::finite;
use crate::stats::skew::{Skew, expected_ratio};
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Requests at the fullest replica, as a multiple of the mean.
    few_clients_ratio: f64 = 1.3;
    /// Requests that must be seen, so that a few are not enough.
    few_clients_requests: usize = 30;
    /// Clients per replica below which there are few.
    few_clients_each: f64 = 4.0;
    /// Distance of a replica's share from a whole number of clients, as a part of one client.
    few_clients_part: f64 = 0.2;
}

/// See the module.
#[derive(Debug)]
pub struct FewClients;

/// Share of the required ratio that the busiest replica must reach in each half of the trial.
const HALF_RATIO_SHARE: f64 = 0.8;
/// Minimum share of requests with a named client.
const NAMED_SHARE: f64 = 0.9;
/// Minimum share of a client's requests that go to one replica.
const STICKY_SHARE: f64 = 0.95;
/// Minimum number of replicas for a finding about a single client served by only one of them: of two, one may be a
/// standby.
const REPLICAS_OF_ONE_CLIENT: usize = 3;

impl Detector for FewClients {
    fn kind(&self) -> FindingKind {
        FindingKind::FewClients
    }

    fn version(&self) -> u32 {
        1
    }

    fn role(&self, _finding: &Finding) -> Role {
        Role::LimitsReading
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let groups = groups(reading);
        let of_replicas = groups.iter().filter(|((kind, _), _)| *kind == PlaceKind::Replica);
        of_replicas
            .filter_map(|((_, service), group)| Candidate::new(reading, service, group))
            .map(|c| c.finding(self))
            .collect()
    }
}

/// A service with unevenly loaded replicas.
struct Candidate<'a> {
    service: &'a str,
    group: &'a Group<'a>,
    /// Share of requests at each replica, weighted by trace.
    shares: BTreeMap<&'a str, f64>,
    requests: usize,
    skew: Skew,
    clients: Clients,
}

impl<'a> Candidate<'a> {
    fn new(reading: &Reading<'_>, service: &'a str, group: &'a Group<'a>) -> Option<Self> {
        let thresholds = &reading.thresholds.few_clients;
        let counts: Vec<f64> = group.places.values().map(|visits| visits.len() as f64).collect();
        let requests = group.places.values().map(Vec::len).sum();
        let skew = Skew::from_counts(&counts)?;
        let hot = group.places.keys().nth(skew.hot)?;
        let is_lasting = group.is_lasting(hot, HALF_RATIO_SHARE * thresholds.few_clients_ratio);
        let is_uneven = skew.ratio >= thresholds.few_clients_ratio && skew.is_significant && is_lasting;
        if !is_uneven || requests < thresholds.few_clients_requests {
            return None;
        }
        let shares = shares_of(group);
        let clients = clients(reading, group, &shares)?;
        Some(Self { service, group, shares, requests, skew, clients })
    }

    fn finding(&self, detector: &FewClients) -> Finding {
        let shown = self.group.places.values().nth(self.skew.hot).into_iter().flatten().take(EXEMPLARS_MAX);
        Finding {
            resource: self.service.into(),
            cost_share: (1.0 - 1.0 / self.skew.ratio).clamp(0.0, 1.0),
            confidence: self.confidence(),
            exemplars: shown.map(|visit| exemplar(visit.trace, [visit.span])).collect(),
            caveats: self.caveats(),
            ..Finding::new(self.evidence(), detector.version())
        }
    }

    fn evidence(&self) -> evidence::FewClients {
        let shares = self.shares.iter();
        evidence::FewClients {
            clients: self.clients,
            replicas: shares
                .map(|(replica, share)| ReplicaShare { replica: (*replica).to_owned(), share: finite(*share) })
                .collect(),
            hot: self.shares.keys().nth(self.skew.hot).copied().unwrap_or_default().to_owned(),
            hot_share: finite(self.skew.share),
            hot_ratio: finite(self.skew.ratio),
            expected_ratio: expected_ratio(self.clients.count(), self.shares.len()),
            requests: self.requests,
        }
    }

    fn confidence(&self) -> Confidence {
        match self.clients {
            Clients::SeenAddresses(_) => Confidence::High,
            _ if self.clients.count() == 1 => Confidence::Low,
            _ => Confidence::Medium,
        }
    }

    fn caveats(&self) -> Vec<Caveat> {
        match self.clients {
            Clients::SeenAddresses(_) => Vec::new(),
            _ if self.clients.count() == 1 => vec![Caveat::StandbysLookSame],
            _ => vec![Caveat::ClientsNotNamed],
        }
    }
}

/// Share of all requests that each replica handled, weighted by trace.
fn shares_of<'a>(group: &'a Group<'a>) -> BTreeMap<&'a str, f64> {
    // From 0, because an empty sum is -0.
    let weight = |visits: &[Visit<'_>]| visits.iter().fold(0.0, |sum, visit| sum + visit.weight);
    let sum: f64 = group.places.values().map(|visits| weight(visits)).sum();
    let share = |visits: &[Visit<'_>]| if sum > 0.0 { weight(visits) / sum } else { 0.0 };
    group.places.iter().map(|(replica, visits)| (replica.as_str(), share(visits))).collect()
}

/// The few clients that explain these shares; `None` if there are many, or if they do not explain the shares.
fn clients(reading: &Reading<'_>, group: &Group<'_>, shares: &BTreeMap<&str, f64>) -> Option<Clients> {
    let replicas = shares.len();
    let least =
        |count: usize| count > 0 && (count as f64) < reading.thresholds.few_clients.few_clients_each * replicas as f64;
    let tolerance = reading.thresholds.few_clients.few_clients_part;
    let fits = |count: usize| least(count) && is_of_whole_clients(shares, count, tolerance);
    let users = || users(reading).filter(|users| fits(*users)).map(Clients::Users);
    match seen(group) {
        Seen::Sticky(count) if count > 1 => return Some(Clients::SeenAddresses(count)).filter(|_| least(count)),
        // One address may be a proxy's own.
        Seen::Sticky(count) => return users().or_else(|| Some(Clients::GivenAddresses(count)).filter(|_| fits(count))),
        // The balancer does not go by address, but may go by session.
        Seen::Everywhere => return users(),
        Seen::Unknown => {}
    }
    let given = reading.trial.client_addresses.and_then(|count| usize::try_from(count).ok());
    given.filter(|count| fits(*count)).map(Clients::GivenAddresses).or_else(users)
}

/// Number of users of a closed load with a single level: each user has one session.
fn users(reading: &Reading<'_>) -> Option<usize> {
    let levels: BTreeSet<u32> = reading.trial.counted_windows().map(|window| window.vus).collect();
    let is_even = reading.trial.counted_windows().all(|window| window.kind == WindowKind::Steady);
    let users = levels.iter().next().filter(|_| levels.len() == 1 && is_even)?;
    usize::try_from(*users).ok().filter(|users| *users > 0)
}

/// Client addresses according to the replicas' spans.
enum Seen {
    Unknown,
    /// Number of addresses, each at one replica.
    Sticky(usize),
    Everywhere,
}

fn seen(group: &Group<'_>) -> Seen {
    let all: f64 = group.places.values().flatten().map(|visit| visit.weight).sum();
    let named: f64 =
        group.places.values().flatten().filter(|visit| visit.key.is_some()).map(|visit| visit.weight).sum();
    if all <= 0.0 || named < NAMED_SHARE * all {
        return Seen::Unknown;
    }
    let mut by_client: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    for (replica, visits) in &group.places {
        for (client, weight) in visits.iter().filter_map(|visit| Some((visit.key?, visit.weight))) {
            *by_client.entry(client).or_default().entry(replica).or_default() += weight;
        }
    }
    let at_home: f64 = by_client.values().map(|replicas| replicas.values().copied().fold(0.0, f64::max)).sum();
    // A proxy in between gives all requests its own address, which then appears at every replica.
    if at_home >= STICKY_SHARE * named { Seen::Sticky(by_client.len()) } else { Seen::Everywhere }
}

/// Whether each replica's share is about that of a whole number of the `clients`.
fn is_of_whole_clients(shares: &BTreeMap<&str, f64>, clients: usize, tolerance: f64) -> bool {
    let busy = shares.values().filter(|share| **share > 0.0).count();
    if clients == 1 && shares.len() < REPLICAS_OF_ONE_CLIENT || busy > clients {
        return false;
    }
    shares.values().all(|share| {
        let parts = share * clients as f64;
        (parts - parts.round()).abs() <= tolerance
    })
}

#[cfg(test)]
mod tests;
