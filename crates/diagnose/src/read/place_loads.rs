//! The load of each of several alike places: a store's partitions, a service's replicas, the servers of a database, the
//! partitions of a topic.
//!
//! A request counts once at each place that it goes to, because what it does there is one decision. Statements that only
//! one server ever sees, such as writes to a primary, do not count: they go there by design.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::hot_partition::PlaceKind;
use narrows_model::run::ServiceInstance;
use narrows_model::trace::{Span, SpanKind, Trace};

use crate::read::Reading;
use crate::read::calls::{Call, Handled};
use crate::read::stores::Store;

/// The attribute by which a request's span says which replica handled it, as the resource of its process has it.
pub(crate) const REPLICA: &str = "narrows.replica";

/// One visit of a request at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) span: &'a Span,
    pub(crate) weight: f64,
    /// Its request, if recorded.
    pub(crate) key: Option<&'a str>,
}

/// Places that are alike.
#[derive(Debug, Default)]
pub(crate) struct Group<'a> {
    /// By name, those that nothing went to as well.
    pub(crate) places: BTreeMap<String, Vec<Visit<'a>>>,
    /// Requests of the visits with their frequencies, if recorded.
    pub(crate) keys: BTreeMap<&'a str, f64>,
    /// Visits by operation.
    pub(crate) operations: BTreeMap<&'a str, f64>,
}

impl Group<'_> {
    /// True if the fullest place has so many times the mean in the earlier and in the later half of all visits.
    pub(crate) fn is_lasting(&self, hot: &str, ratio_min: f64) -> bool {
        let starts = self.places.values().flatten().map(|visit| visit.span.start_ns);
        let mut starts: Vec<i64> = starts.collect();
        starts.sort_unstable();
        let Some(middle_ns) = starts.get(starts.len() / 2).copied() else { return false };
        let at = self.places.keys().position(|place| place == hot).unwrap_or(0);
        let half = |is_in: &dyn Fn(i64) -> bool| -> Option<f64> {
            let counts = self.places.values();
            let counts = counts.map(|visits| visits.iter().filter(|visit| is_in(visit.span.start_ns)).count() as f64);
            ratio_of(&counts.collect::<Vec<f64>>(), at)
        };
        let ratios = [half(&|start_ns| start_ns < middle_ns), half(&|start_ns| start_ns >= middle_ns)];
        ratios.iter().flatten().all(|ratio| *ratio >= ratio_min)
    }
}

/// A place's count as a multiple of the mean.
pub(crate) fn ratio_of(counts: &[f64], at: usize) -> Option<f64> {
    let sum: f64 = counts.iter().sum();
    (sum > 0.0).then(|| counts.get(at).copied().unwrap_or(0.0) * counts.len() as f64 / sum)
}

/// By what they are and of whom.
pub(crate) type Groups<'a> = BTreeMap<(PlaceKind, String), Group<'a>>;

/// All groups of two places or more.
pub(crate) fn groups<'a>(reading: &Reading<'a>) -> Groups<'a> {
    let mut gather =
        Gather { trial: reading.trial, stores: HashMap::new(), reporting: BTreeSet::new(), groups: BTreeMap::new() };
    let all = || reading.operations.iter().flat_map(|((_, name), all)| all.iter().map(move |handled| (name, handled)));
    // All that replicas say before what their callers say.
    all().for_each(|(operation, handled)| gather.add_entry(operation, handled));
    all().for_each(|(operation, handled)| gather.add_calls(operation, handled));
    gather.add_topics();
    gather.add_idle();
    gather.groups.retain(|_, group| group.places.len() > 1);
    gather.groups
}

/// A span's description of a store: port, system and address.
type Called<'a> = (Option<u16>, Option<&'a str>, Option<&'a str>);

struct Gather<'a> {
    trial: &'a TrialEvidence,
    /// Names of stores, by how spans call them.
    stores: HashMap<Called<'a>, String>,
    /// Services whose own spans say which replica handled a request.
    reporting: BTreeSet<&'a str>,
    groups: Groups<'a>,
}

impl<'a> Gather<'a> {
    /// A request that a replica handled, where its span says which.
    fn add_entry(&mut self, operation: &'a str, handled: &Handled<'a>) {
        let (entry, trace) = (handled.request.entry, handled.request.trace);
        let Some((service, replica)) = replica_of(self.trial, entry) else { return };
        let client = entry.attributes.get("client.address").and_then(|address| address.as_str());
        let visit = Visit { trace, span: entry, weight: trace.weight, key: client };
        if entry.kind == SpanKind::Server {
            self.reporting.insert(service);
        }
        self.add((PlaceKind::Replica, service.to_owned()), replica.to_string(), visit, operation);
    }

    fn add_calls(&mut self, operation: &'a str, handled: &'a Handled<'a>) {
        let mut visited: BTreeSet<((PlaceKind, String), String)> = BTreeSet::new();
        for call in &handled.calls {
            let Some((group, place)) = self.place_of(call) else { continue };
            if visited.insert((group.clone(), place.clone())) {
                let (trace, weight) = (handled.request.trace, handled.weight());
                self.add(group, place, Visit { trace, span: call.last(), weight, key: key_of(call) }, operation);
            }
        }
    }

    fn place_of(&mut self, call: &'a Call<'a>) -> Option<((PlaceKind, String), String)> {
        let span = call.last();
        let facts = &span.facts;
        if let Some(partition) = call.partition() {
            let known = (facts.server_port, facts.db_system.as_deref(), facts.server_address.as_deref());
            let trial = self.trial;
            let name = self.stores.entry(known).or_insert_with(|| Store::for_call(trial, span).name);
            return Some(((PlaceKind::Partition, name.clone()), partition.to_owned()));
        }
        if let Some((service, replica)) = replica_at(self.trial, facts.server_port) {
            // Where the replicas' own spans say which of them handled it, those count.
            return (!self.reporting.contains(service))
                .then(|| ((PlaceKind::Replica, service.to_owned()), replica.to_string()));
        }
        let name = match call.query {
            Some(_) => call.kind.to_string(),
            None => facts.rpc_service.clone().or_else(|| facts.peer_service.clone())?,
        };
        let address = facts.server_address.as_ref()?;
        let place = facts.server_port.map_or(address.clone(), |port| format!("{address}:{port}"));
        Some(((PlaceKind::Server, name), place))
    }

    fn add_topics(&mut self) {
        for trace in &self.trial.traces {
            for span in &trace.spans {
                let partition = span.attributes.get("messaging.destination.partition.id");
                let (Some(partition), Some(topic)) = (partition, &span.facts.messaging_destination) else { continue };
                let place = partition.as_str().map_or_else(|| partition.to_string(), str::to_owned);
                let key = span.attributes.get("messaging.kafka.message.key").and_then(|key| key.as_str());
                // Consumers show how long a message takes to handle; the producer does not wait.
                if span.kind == SpanKind::Consumer {
                    let visit = Visit { trace, span, weight: trace.weight, key };
                    self.add((PlaceKind::Topic, topic.clone()), place, visit, &span.name);
                }
            }
        }
    }

    /// Places that nothing went to count too.
    fn add_idle(&mut self) {
        for ((kind, name), group) in &mut self.groups {
            match kind {
                PlaceKind::Partition => {
                    for reported in self.trial.throughput().into_iter().filter(|reported| reported.service == *name) {
                        group.places.entry(reported.partition).or_default();
                    }
                }
                PlaceKind::Replica => {
                    for instance in self.trial.services.iter().filter(|instance| instance.service == *name) {
                        group.places.entry(instance.replica.to_string()).or_default();
                    }
                }
                PlaceKind::Server | PlaceKind::Topic => {}
            }
        }
    }

    fn add(&mut self, group: (PlaceKind, String), place: String, visit: Visit<'a>, operation: &'a str) {
        let group = self.groups.entry(group).or_default();
        group.places.entry(place).or_default().push(visit);
        *group.operations.entry(operation).or_default() += visit.weight;
        if let Some(key) = visit.key {
            *group.keys.entry(key).or_default() += visit.weight;
        }
    }
}

/// The replica that a span says it comes from, or that listens on the port it names, of a service that has several.
pub(crate) fn replica_of<'a>(trial: &'a TrialEvidence, entry: &Span) -> Option<(&'a str, u32)> {
    let said = entry.attributes.get(REPLICA);
    let number = said.and_then(|said| said.as_u64()).and_then(|replica| u32::try_from(replica).ok());
    let said = number.or_else(|| said.and_then(|said| said.as_str()).and_then(|text| text.parse().ok()));
    let is_it = |one: &&ServiceInstance| one.service == entry.service && Some(one.replica) == said;
    match trial.services.iter().find(is_it) {
        Some(one) => has_sisters(trial, one).then_some((one.service.as_str(), one.replica)),
        None => replica_at(trial, entry.facts.server_port).filter(|(service, _)| *service == entry.service),
    }
}

fn has_sisters(trial: &TrialEvidence, instance: &ServiceInstance) -> bool {
    trial.services.iter().any(|other| other.service == instance.service && other.replica != instance.replica)
}

/// The replica that listens on a port, of a service that has several.
fn replica_at(trial: &TrialEvidence, port: Option<u16>) -> Option<(&str, u32)> {
    let instance = trial.reached_at(port)?;
    has_sisters(trial, instance).then_some((instance.service.as_str(), instance.replica))
}

/// Request of a call, if its values are recorded.
fn key_of<'a>(call: &'a Call<'a>) -> Option<&'a str> {
    let is_recorded = match call.query {
        Some(query) => {
            query.shape.placeholders == 0 && query.shape.has_values() || call.request.len() > query.text.len()
        }
        None => !call.request.is_empty(),
    };
    is_recorded.then_some(call.request.as_str())
}
