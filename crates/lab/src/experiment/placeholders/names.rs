//! The names that `${…}` may use, and what they stand for in a trial.

use std::collections::BTreeMap;

use super::syntax::{self, TrialPiece};
use crate::experiment::bound::ReplicaPorts;
use crate::experiment::document::tree::{Form, Node};
use crate::experiment::error::Problem;
use crate::experiment::grammar::shape::Scope;
use crate::experiment::language::Language;
use crate::experiment::system::cluster::KUBERNETES;
use crate::experiment::system::network::Network;

pub(crate) const PARAMETERS_KEY: &str = "parameters";
pub(crate) const SYSTEM: &str = "system";
pub(crate) const SERVICES: &str = "services";

/// Names for each service: `${orders.port}`.
const SERVICE_FACTS: [&str; 4] = ["host", "port", "url", "urls"];

/// Names for the trial.
const TRIAL_NAMES: [&str; 3] = ["otlp.endpoint", "seed", "trial.dir"];

/// Names for a replica, in its own service.
const REPLICA_NAMES: [&str; 2] = ["port", "replica"];

/// Words that no parameter may be called: built-in names, and keys that variants have or may come to have.
pub(crate) const RESERVED_FOR_PARAMETERS: [&str; 12] = [
    "description",
    "from",
    "load",
    "name",
    "objectives",
    "otlp",
    "parameters",
    "port",
    "replica",
    "seed",
    "system",
    "trial",
];

/// Words that no service may be called: `${otlp.endpoint}` would mean two things.
pub(crate) const RESERVED_FOR_SERVICES: [&str; 2] = ["otlp", "trial"];

/// The names of an experiment. Those of a section that is itself broken are unknown, and any name is let pass there.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    parameters: Option<Vec<&'a str>>,
    services: Option<Vec<&'a str>>,
}

impl<'a> Names<'a> {
    /// Reads the names off a document that has not been checked yet.
    pub(crate) fn of(root: &'a Node, language: Language) -> Self {
        let services = match root.get(SYSTEM) {
            // A system in a cluster need not have services.
            Some(system) => match (system.get(SERVICES), system.get(KUBERNETES.name())) {
                (None, Some(_)) => Some(Vec::new()),
                (services, _) => services.and_then(keys),
            },
            None => absent(root, language),
        };
        Self { parameters: root.get(PARAMETERS_KEY).map_or_else(|| absent(root, language), keys), services }
    }

    /// The parameters; `None` if they are unknown.
    pub(crate) fn parameters(&self) -> Option<&[&'a str]> {
        self.parameters.as_deref()
    }

    /// The services in the order they are started; `None` if that is unknown.
    pub(crate) fn services(&self) -> Option<&[&'a str]> {
        self.services.as_deref()
    }

    /// Faults of the `${…}` of a text, each name once.
    pub(crate) fn judge(&self, text: &str, scope: Scope) -> Vec<Problem> {
        let pieces = match syntax::trial_pieces(text) {
            Ok(pieces) => pieces,
            Err(problem) => return vec![problem],
        };
        let mut names: Vec<&str> = Vec::new();
        for piece in pieces {
            if let TrialPiece::Name(name) = piece
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names.into_iter().filter_map(|name| self.judge_name(name, scope)).collect()
    }

    fn judge_name(&self, name: &str, scope: Scope) -> Option<Problem> {
        if self.is_known(name, scope) {
            return None;
        }
        if self.is_known(name, Scope::Replica) {
            let place =
                if REPLICA_NAMES.contains(&name) { "in a service's own run, cwd, env and ready" } else { "in texts" };
            return Some(
                Problem::new(format!("`${{{name}}}` is not known here")).hint(format!("it can be used {place}")),
            );
        }
        let known = self.all(scope);
        let mut problem = Problem::unknown("name", name, known.iter().map(String::as_str));
        problem.message = format!("unknown name in `${{{name}}}`");
        Some(problem)
    }

    fn is_known(&self, name: &str, scope: Scope) -> bool {
        let in_trial = matches!(scope, Scope::Trial | Scope::Replica);
        let is_parameter = self.parameters.as_ref().map_or(!name.contains('.'), |known| known.contains(&name));
        let is_built_in =
            in_trial && TRIAL_NAMES.contains(&name) || scope == Scope::Replica && REPLICA_NAMES.contains(&name);
        let is_service_fact = in_trial
            && name.rsplit_once('.').is_some_and(|(service, fact)| {
                SERVICE_FACTS.contains(&fact) && self.services.as_ref().is_none_or(|known| known.contains(&service))
            });
        is_parameter || is_built_in || is_service_fact
    }

    fn all(&self, scope: Scope) -> Vec<String> {
        let mut all: Vec<String> = self.parameters.iter().flatten().map(|name| (*name).to_owned()).collect();
        if scope == Scope::Replica {
            all.extend(REPLICA_NAMES.map(str::to_owned));
        }
        if matches!(scope, Scope::Trial | Scope::Replica) {
            let services = self.services.iter().flatten();
            all.extend(services.flat_map(|service| SERVICE_FACTS.map(|fact| format!("{service}.{fact}"))));
            all.extend(TRIAL_NAMES.map(str::to_owned));
        }
        all
    }
}

fn keys(section: &Node) -> Option<Vec<&str>> {
    match &section.form {
        Form::Map(entries) => Some(entries.iter().map(|entry| entry.key.as_str()).collect()),
        _ => None,
    }
}

/// The names of a section that is not there: none, or unknown when its key may be misspelt.
fn absent<'a>(root: &Node, language: Language) -> Option<Vec<&'a str>> {
    if language.experiment.has_strangers(root) { None } else { Some(Vec::new()) }
}

/// Meaning of the names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) parameters: &'a BTreeMap<String, String>,
    /// None as long as only parameters are known.
    pub(crate) network: Option<&'a Network<'a>>,
    /// The replica that it is about, inside its service.
    pub(crate) replica: Option<&'a ReplicaPorts>,
}

impl<'a> Values<'a> {
    /// Parameters alone.
    pub(crate) fn of(parameters: &'a BTreeMap<String, String>) -> Self {
        Self { parameters, network: None, replica: None }
    }

    /// The text for a name; `None` if it has none here.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        match (name, self.replica) {
            ("replica", Some(own)) => return Some(own.replica.to_string()),
            ("port", Some(own)) => return self.network.map(|network| network.own_port(own).to_string()),
            _ => {}
        }
        match self.parameters.get(name) {
            Some(value) => Some(value.clone()),
            None => self.of_trial(name),
        }
    }

    fn of_trial(&self, name: &str) -> Option<String> {
        let network = self.network?;
        let bindings = network.bindings;
        match name {
            "otlp.endpoint" => return Some(bindings.otlp_endpoint.clone()),
            "trial.dir" => return Some(bindings.trial_dir.to_string_lossy().into_owned()),
            "seed" => return Some(bindings.seed.to_string()),
            _ => {}
        }
        let (service, fact) = name.rsplit_once('.')?;
        network.fact(self.replica, service, fact)
    }
}
