//! Another trial of the run that puts another load on the same programs. It tells how their CPU depends on the load, and a lighter
//! one tells what a request takes when little else is under way.

use std::collections::BTreeSet;

use narrows_model::evidence::TrialEvidence;
use narrows_model::run::{ServiceInstance, Verdict, sidecar_of};

use super::levels::{Level, levels};

/// Factor between two rates from which they tell how CPU depends on the load.
const RATE_SPREAD_MIN: f64 = 1.5;

/// A trial with another load, and its level whose rate differs most.
#[derive(Debug, Clone)]
pub(crate) struct OtherLoad<'a> {
    pub(crate) trial: &'a TrialEvidence,
    pub(crate) level: Level,
}

/// The trial of a run that runs the same programs as another one with a single level, of requests of the same operations, and whose
/// rate differs most; `None` if no rate differs by enough. No change alters the rate of arrivals, so that they need none; one user's
/// requests meet no other, and tell of no load.
pub(crate) fn other_load<'a>(trial: &TrialEvidence, run: &'a [TrialEvidence], own: &[Level]) -> Option<OtherLoad<'a>> {
    let [own] = own else { return None };
    if own.load.arrivals.is_some() || own.load.users <= 1 {
        return None;
    }
    let spread = |other: &OtherLoad<'_>| (other.level.rate() / own.rate()).ln().abs();
    let is_like = |other: &&TrialEvidence| {
        let is_valid = other.trial.validity.verdict != Verdict::Invalid;
        is_valid && operations(trial) == operations(other) && programs(trial) == programs(other)
    };
    let with_levels = |trial: &'a TrialEvidence| {
        levels(trial).unwrap_or_default().into_iter().map(move |level| OtherLoad { trial, level })
    };
    let others = run.iter().filter(is_like).flat_map(with_levels);
    let other = others.max_by(|a, b| spread(a).total_cmp(&spread(b)))?;
    (spread(&other) > RATE_SPREAD_MIN.ln()).then_some(other)
}

/// Services with the names of what they do.
fn operations(trial: &TrialEvidence) -> BTreeSet<(&str, &str)> {
    trial.operations.iter().map(|operation| (operation.service.as_str(), operation.name.as_str())).collect()
}

/// Each replica as it would be run at any ports and in any folder, and its limit; of sidecars only that they are there.
fn programs(trial: &TrialEvidence) -> Vec<(&str, Vec<String>, Option<f64>)> {
    let ports: Vec<String> = trial.services.iter().flat_map(ports).map(|port| port.to_string()).collect();
    let argument = |text: &String| {
        let is_path = text.contains('/');
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
        let places = numbers.filter(|run| is_path || ports.iter().any(|port| port == run));
        places.fold(text.clone(), |text, place| text.replacen(place, "", 1))
    };
    let of = |one: &ServiceInstance| match sidecar_of(&one.service) {
        Some(_) => Vec::new(),
        None => one.command.iter().map(argument).collect(),
    };
    trial.services.iter().map(|one| (one.service.as_str(), of(one), one.cpu_limit_cores)).collect()
}

fn ports(instance: &ServiceInstance) -> impl Iterator<Item = u16> {
    std::iter::once(instance.port).chain(instance.stand_in_ports.iter().copied())
}

#[cfg(test)]
mod tests {
    use narrows_testkit::simulator;

    use super::*;

    /// A run of one user and one of several, of the same programs at other ports.
    fn run() -> [TrialEvidence; 2] {
        let trial =
            |users: u32| simulator::System { steps: vec![(users, 15)], ..simulator::System::default() }.run("a");
        let mut run = [trial(1), trial(4)];
        for (number, one) in run.iter_mut().flat_map(|trial| &mut trial.services).enumerate() {
            let port = 40_000 + number as u16;
            one.port = port;
            let arguments = [&format!("/tmp/{number}/serve"), "--port", &port.to_string(), "--threads", "4"];
            one.command = arguments.map(str::to_owned).to_vec();
        }
        run
    }

    #[test]
    fn the_same_programs_at_other_ports_are_found() {
        let mut run = run();
        let found = |run: &[TrialEvidence]| {
            let several = &run[run.len() - 1];
            let own = levels(several).expect("a level");
            other_load(several, run, &own).map(|other| other.level.load.users)
        };
        assert_eq!(found(&run), Some(1));
        assert_eq!(found(&run[1..]), None, "itself has the same rate");
        run[0].services[0].command[4] = "8".into();
        assert_eq!(found(&run), None, "other arguments");
    }
}
