//! Spending of the time of requests: the operations of a run, each once, with its variants.
//!
//! Repetitions of a variant are one: their requests are added up. Operations come with those first that took most time
//! in any variant.

use narrows_model::breakdown::{Breakdown, TimeCategory, TimePart};
use narrows_model::comparison::Outcome;

/// One operation over the variants.
#[derive(Debug)]
pub(crate) struct OperationTime<'a> {
    pub(crate) service: &'a str,
    pub(crate) operation: &'a str,
    /// Variant and what its requests' time was spent on, in the order of the variants; variants without it are left out.
    pub(crate) variants: Vec<(&'a str, Breakdown)>,
}

/// All operations whose time is broken down.
pub(crate) fn spent(outcome: &Outcome) -> Vec<OperationTime<'_>> {
    let mut all: Vec<OperationTime<'_>> = Vec::new();
    for (evidence, breakdowns) in outcome.evidence.trials.iter().zip(&outcome.breakdowns) {
        for breakdown in breakdowns {
            let same = |spent: &OperationTime<'_>| {
                (spent.service, spent.operation) == (&breakdown.service, &breakdown.operation)
            };
            let at = all.iter().position(same).unwrap_or_else(|| {
                let (service, operation) = (&breakdown.service, &breakdown.operation);
                all.push(OperationTime { service, operation, variants: Vec::new() });
                all.len() - 1
            });
            all[at].add(&evidence.trial.variant, breakdown);
        }
    }
    all.sort_by(|a, b| b.most_time().total_cmp(&a.most_time()));
    all
}

impl<'a> OperationTime<'a> {
    fn add(&mut self, variant: &'a str, breakdown: &Breakdown) {
        match self.variants.iter_mut().find(|(known, _)| *known == variant) {
            Some((_, known)) => *known = together(known, breakdown),
            None => self.variants.push((variant, breakdown.clone())),
        }
    }

    fn most_time(&self) -> f64 {
        self.variants.iter().map(|(_, breakdown)| breakdown.requests * breakdown.mean_ns).fold(0.0, f64::max)
    }

    /// The longest mean of any variant, nanoseconds.
    pub(crate) fn slowest_ns(&self) -> f64 {
        self.variants.iter().map(|(_, breakdown)| breakdown.mean_ns).fold(0.0, f64::max)
    }

    /// Categories of time in any variant, the largest mean first.
    pub(crate) fn categories(&self) -> Vec<&TimeCategory> {
        let mut largest: Vec<(&TimeCategory, f64)> = Vec::new();
        for part in self.variants.iter().flat_map(|(_, breakdown)| &breakdown.parts) {
            match largest.iter_mut().find(|(known, _)| *known == &part.category) {
                Some((_, ns)) => *ns = ns.max(part.mean_ns),
                None => largest.push((&part.category, part.mean_ns)),
            }
        }
        largest.sort_by(|a, b| b.1.total_cmp(&a.1));
        largest.into_iter().map(|(category, _)| category).collect()
    }
}

/// The requests of two breakdowns of one operation added up.
fn together(a: &Breakdown, b: &Breakdown) -> Breakdown {
    let requests = a.requests + b.requests;
    let weighed = |of: &Breakdown, ns: f64| if requests > 0.0 { ns * of.requests / requests } else { 0.0 };
    let mut parts: Vec<TimePart> = Vec::new();
    for (of, part) in a.parts.iter().map(|part| (a, part)).chain(b.parts.iter().map(|part| (b, part))) {
        let mean_ns = weighed(of, part.mean_ns);
        match parts.iter_mut().find(|known| known.category == part.category) {
            Some(known) => known.mean_ns += mean_ns,
            None => parts.push(TimePart { mean_ns, ..part.clone() }),
        }
    }
    let mean_ns = weighed(a, a.mean_ns) + weighed(b, b.mean_ns);
    parts.iter_mut().for_each(|part| part.share = if mean_ns > 0.0 { part.mean_ns / mean_ns } else { 0.0 });
    parts.sort_by(|a, b| b.mean_ns.total_cmp(&a.mean_ns));
    Breakdown { requests, mean_ns, parts, ..a.clone() }
}

#[cfg(test)]
pub(crate) mod tests {
    use narrows_model::breakdown::OwnTime;

    use super::*;
    use crate::fixture::drones;

    fn breakdown(service: &str, operation: &str, requests: f64, parts: &[(TimeCategory, f64)]) -> Breakdown {
        let whole: f64 = parts.iter().map(|(_, ms)| ms).sum();
        let part = |(category, ms): &(TimeCategory, f64)| TimePart {
            category: category.clone(),
            mean_ns: ms * 1e6,
            share: ms / whole,
        };
        Breakdown {
            service: service.to_owned(),
            operation: operation.to_owned(),
            requests,
            mean_ns: whole * 1e6,
            parts: parts.iter().map(part).collect(),
        }
    }

    /// The drones' run with what its time was spent on.
    pub(crate) fn outcome() -> Outcome {
        let to = |name: &str| TimeCategory::Dependency(name.to_owned());
        let again = || TimeCategory::BackOff("docstore".to_owned());
        let mut outcome = drones::outcome();
        let below = [(320.0, 270.0, 35.0), (350.0, 0.0, 80.0), (140.0, 0.0, 42.0), (12.0, 0.0, 9.0)];
        outcome.breakdowns = below
            .into_iter()
            .map(|(store, waits, work)| {
                let mut parts = vec![
                    (to("docstore"), store),
                    (to("drone-scheduler"), work),
                    (TimeCategory::Own(OwnTime::OnCpu), 11.0),
                ];
                parts.extend([(TimeCategory::Pool, 8.0), (TimeCategory::Unknown, 2.0), (to("redis"), 6.0)]);
                let mut inner = vec![(to("docstore"), store), (TimeCategory::Own(OwnTime::Lock), work)];
                if waits > 0.0 {
                    parts.insert(1, (again(), waits));
                    inner.insert(1, (again(), waits));
                }
                let scheduler = breakdown("drone-scheduler", "GET /api/dronedeliveries/utilization", 900.0, &inner);
                vec![breakdown("gateway", "GET /api/invoices", 900.0, &parts), scheduler]
            })
            .collect();
        outcome
    }

    #[test]
    fn operations_are_reported_once_and_repetitions_added_up() {
        let mut outcome = outcome();
        let all = spent(&outcome);
        let told: Vec<_> = all.iter().map(|spent| (spent.service, spent.variants.len())).collect();
        assert_eq!(told, [("gateway", 4), ("drone-scheduler", 4)]);
        outcome.evidence.trials[1].trial.variant = "baseline".to_owned();
        let all = spent(&outcome);
        assert_eq!((all[0].variants.len(), all[0].variants[0].1.requests), (3, 1800.0));
        let store = &all[0].variants[0].1.parts[0];
        assert!((store.mean_ns - 335e6).abs() < 1.0, "{store:?}");
        assert!((all[0].variants[0].1.parts.iter().map(|part| part.share).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
