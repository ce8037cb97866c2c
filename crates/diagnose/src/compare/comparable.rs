//! Whether there is anything to compare between two sides, so that a mistaken name or time is an error and no silence.

use std::collections::BTreeSet;
use std::fmt;

use narrows_model::evidence::TrialEvidence;
use narrows_model::series::{names, services};

use crate::compare::diff::Side;

/// Names that an explanation lists.
const NAMED_MAX: usize = 3;

/// Why nothing of two sides can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incomparable {
    /// A side has no finished trial.
    Unfinished(String),
    /// A side has no requests.
    Empty(String),
    /// The sides have services in common, but no operation.
    NoCommonOperation(String, String),
    /// The sides have no service in common: what each has.
    OtherServices([(String, Vec<String>); 2]),
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished(side) => write!(f, "{side} has no finished trial, expected one on each side"),
            Self::Empty(side) => {
                write!(f, "{side} has no requests, spans or metrics of services, expected some on each side")
            }
            Self::NoCommonOperation(before, after) => {
                write!(f, "{before} and {after} have no operation in common, expected the same requests on both sides")
            }
            Self::OtherServices([(before, old), (after, new)]) => write!(
                f,
                "{before} ({}) and {after} ({}) have no service in common, expected two measurements of one system",
                few(old),
                few(new)
            ),
        }
    }
}

impl std::error::Error for Incomparable {}

fn few(names: &[String]) -> String {
    let named = names.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Checks that two sides can be compared. Sides without any spans can be, by their load or by metrics.
///
/// # Errors
/// When there is nothing on a side, or nothing in common.
pub fn check(before: &Side<'_>, after: &Side<'_>) -> Result<(), Incomparable> {
    for side in [before, after] {
        let trials = side.done();
        if trials.is_empty() {
            return Err(Incomparable::Unfinished(side.label.to_owned()));
        }
        if trials.iter().all(|trial| is_empty(trial)) {
            return Err(Incomparable::Empty(side.label.to_owned()));
        }
    }
    let (old, new) = (services(before), services(after));
    if !old.is_empty() && !new.is_empty() && old.is_disjoint(&new) {
        let of = |side: &Side<'_>, services: BTreeSet<String>| (side.label.to_owned(), services.into_iter().collect());
        return Err(Incomparable::OtherServices([of(before, old), of(after, new)]));
    }
    let (old, new) = (operations(before), operations(after));
    if !old.is_empty() && !new.is_empty() && old.is_disjoint(&new) {
        return Err(Incomparable::NoCommonOperation(before.label.to_owned(), after.label.to_owned()));
    }
    Ok(())
}

/// True if a trial has no request in its counted windows, and no metrics of requests.
fn is_empty(trial: &TrialEvidence) -> bool {
    let load = trial.counted_load();
    let has_metrics = trial.series.iter().any(|series| {
        [services::REQUESTS, services::LATENCY].contains(&series.key.name.as_str())
            && series.points.iter().any(|point| trial.is_counted(point.time_ns))
    });
    load.sent == 0 && load.due == 0 && trial.operations.is_empty() && trial.traces.is_empty() && !has_metrics
}

/// The services of a side: those that the run had, and those that sent spans.
fn services(side: &Side<'_>) -> BTreeSet<String> {
    let names = side.done().into_iter().flat_map(TrialEvidence::service_names);
    let of_run = names.filter(|name| *name != names::GENERATOR);
    of_run.chain(operations(side).into_iter().map(|(service, _)| service)).map(str::to_owned).collect()
}

/// The operations of a side, those of servers and those that begin traces, by service and name.
fn operations<'a>(side: &Side<'a>) -> BTreeSet<(&'a str, &'a str)> {
    let mut found = BTreeSet::new();
    for trial in side.done() {
        found.extend(trial.operations.iter().map(|one| (one.service.as_str(), one.name.as_str())));
        let roots = trial.traces.iter().filter_map(|trace| trace.root());
        found.extend(roots.map(|root| (root.service.as_str(), root.name.as_str())));
    }
    found
}

#[cfg(test)]
mod tests {
    use narrows_model::evidence::RunEvidence;
    use narrows_model::run::TrialState;
    use narrows_testkit::operations::operation;
    use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

    use super::*;

    fn run(of: &[(&str, &str)], rate: f64) -> RunEvidence {
        let trial = TrialBuilder::new("a").steady(10, Load { vus: 4, rate, latency_ms: 20.0 });
        let add = |trial: TrialBuilder, (service, name): &(&str, &str)| {
            trial.operation(operation(service, name, 10, 5.0, 3.0))
        };
        run_of_trials([of.iter().fold(trial, add).build()])
    }

    fn checked(before: &RunEvidence, after: &RunEvidence) -> Result<(), String> {
        let side = |label, run| Side { label, run, findings: &[] };
        check(&side("one", before), &side("two", after)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_has_nothing_in_common_is_no_comparison() {
        let shop = run(&[("shop", "GET /orders"), ("stock", "GET /parts")], 5.0);
        let travel = run(&[("a", "GET /"), ("b", "GET /"), ("c", "GET /"), ("d", "GET /"), ("e", "GET /")], 5.0);
        assert_eq!(checked(&shop, &run(&[("stock", "GET /parts")], 5.0)), Ok(()));
        assert_eq!(checked(&shop, &run(&[], 5.0)), Ok(()), "a load without spans");
        assert_eq!(
            checked(&shop, &travel).unwrap_err(),
            "one (shop, stock) and two (a, b, c and 2 more) have no service in common, expected two measurements of one \
             system"
        );
        assert_eq!(
            checked(&shop, &run(&[("shop", "POST /login")], 5.0)).unwrap_err(),
            "one and two have no operation in common, expected the same requests on both sides"
        );
    }

    #[test]
    fn services_without_spans_count_too() {
        let ledger = TrialBuilder::new("a").service("ledger", None);
        let ledger = run_of_trials([ledger.steady(10, Load { vus: 4, rate: 5.0, latency_ms: 20.0 }).build()]);
        assert_eq!(
            checked(&run(&[("shop", "GET /orders")], 5.0), &ledger).unwrap_err(),
            "one (shop) and two (ledger) have no service in common, expected two measurements of one system"
        );
        assert_eq!(checked(&ledger, &ledger), Ok(()));
    }

    #[test]
    fn a_side_without_anything_is_no_comparison() {
        let (shop, empty) = (run(&[("shop", "GET /orders")], 5.0), run(&[], 0.0));
        let said = checked(&shop, &empty).unwrap_err();
        assert_eq!(said, "two has no requests, spans or metrics of services, expected some on each side");
        let mut failed = shop.clone();
        failed.trials[0].trial.state = TrialState::Failed;
        assert_eq!(checked(&failed, &shop).unwrap_err(), "one has no finished trial, expected one on each side");
    }
}
