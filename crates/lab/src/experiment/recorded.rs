//! An experiment as a run file keeps it: the parts of its text that conclusions need.

use std::collections::{BTreeMap, BTreeSet};

use narrows_diagnose::thresholds::Thresholds;
use narrows_model::load::Arrivals;
use narrows_model::published::Notes;

use super::document::at::At;
use super::document::tree::{self, Form, Node};
use super::error::Report;
use super::load::client_addresses::{self, CLIENT_ADDRESSES};
use super::load::request::REQUEST;
use super::load::{self, LOAD};
use super::objective::{self, OBJECTIVES, Objective};
use super::placeholders::names::Values;
use super::placeholders::syntax::{TrialPiece, trial_pieces};
use super::{published, thresholds};

/// The parts of an experiment that conclusions need, as far as they can be read: a run file may come from elsewhere,
/// and the data files of its experiment need not be here.
#[derive(Debug, Default)]
pub struct RecordedExperiment {
    /// Its objectives, in order.
    pub objectives: Vec<Objective>,
    /// The thresholds that it sets, and the usual ones for the rest.
    pub thresholds: Thresholds,
    /// Parameters with reasons, and published figures.
    pub notes: Notes,
    /// How many different addresses its load connects from: one when it names none; `None` if it cannot be told from the
    /// text alone.
    pub client_addresses: Option<u32>,
    /// The parameters that are written in requests of its load: with other values, a trial has other requests.
    pub request_parameters: BTreeSet<String>,
    /// The whole of it; `None` if it is no YAML.
    pub(crate) root: Option<Node>,
}

impl RecordedExperiment {
    /// Reads the text that a run file keeps.
    pub fn read(source: &str) -> Self {
        let Some(node) = tree::parse(source, &mut Report::new("")) else { return Self::default() };
        let root = At::root(&node);
        let objectives = root.get(&OBJECTIVES);
        Self {
            objectives: objectives.iter().flat_map(At::items).filter_map(objective::read).collect(),
            thresholds: thresholds::thresholds(root),
            notes: published::notes(root),
            client_addresses: client_addresses(root),
            request_parameters: request_parameters(root),
            root: Some(node),
        }
    }

    /// How iterations arrive in a trial with these parameters; `None` in a closed model, where open ones differ, and if it
    /// cannot be read.
    pub fn arrivals(&self, parameters: &BTreeMap<String, String>) -> Option<Arrivals> {
        load::arrivals(At::root(self.root.as_ref()?), &Values::of(parameters))
    }
}

fn client_addresses(root: At<'_>) -> Option<u32> {
    let load = root.get(&LOAD)?;
    let Some(at) = load.get(&CLIENT_ADDRESSES) else { return Some(1) };
    let addresses = client_addresses::expand(at, None, &mut Report::new(""))?;
    u32::try_from(addresses.len()).ok().filter(|count| *count > 0)
}

fn request_parameters(root: At<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Some(load) = root.get(&LOAD) {
        requests(load.node, &mut |request| placeholders(request, &mut names));
    }
    names
}

/// Visits the requests below a part, be they of a scenario, a mix or a flow.
fn requests(node: &Node, visit: &mut impl FnMut(&Node)) {
    for (key, value) in parts(node) {
        if key == REQUEST.name() { visit(value) } else { requests(value, visit) }
    }
}

/// The names that `${…}` has in all texts below a part.
fn placeholders(node: &Node, names: &mut BTreeSet<String>) {
    let pieces = node.text().and_then(|text| trial_pieces(text).ok()).unwrap_or_default();
    names.extend(pieces.into_iter().filter_map(|piece| match piece {
        TrialPiece::Name(name) => Some(name.to_owned()),
        TrialPiece::Text(_) => None,
    }));
    parts(node).for_each(|(_, part)| placeholders(part, names));
}

/// The parts of a map or a list, with their keys in a map.
fn parts(node: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let items: &[Node] = if let Form::List(items) = &node.form { items } else { &[] };
    let entries = node.entries().iter().map(|entry| (entry.key.as_str(), &entry.value));
    entries.chain(items.iter().map(|item| ("", item)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_those_of_the_scenarios_that_take_part() {
        let read = |scenarios: &str| {
            let parameters = [("burst", "11"), ("pacing", "open")];
            let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let source = format!("load: {{ target: \"${{front.url}}\", scenarios: {{ {scenarios} }} }}\n");
            RecordedExperiment::read(&source).arrivals(&parameters.into())
        };
        let open =
            |key: &str| format!("{{ model: constant-arrival-rate, rate: 5, duration: 1s{key}, request: GET / }}");
        let bursts = open(", arrivals: \"bursts of ${burst}\"");
        let closed = "{ model: constant-vus, vus: 1, duration: 1s, request: GET /, when: { pacing: closed } }";
        assert_eq!(read(&format!("a: {bursts}, b: {closed}")), Some(Arrivals::Bursts(11)));
        assert_eq!(read(&format!("a: {}", open(""))), Some(Arrivals::Uniform));
        assert_eq!(read(&format!("a: {bursts}, b: {}", open(""))), None, "they differ");
        assert_eq!(read(&format!("b: {}", closed.replace("closed", "open"))), None, "users");
        assert_eq!(read(""), None);
    }
}
