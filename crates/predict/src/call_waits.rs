//! Time that requests wait for calls, as sockets show it: Little's law over the levels of a load.

use narrows_model::call_graph::{CLIENTS, CallEdge, CallFigures};
use narrows_model::series::names;

use crate::DiagnosedTrial;

/// Sums over the levels of a load, each as long as it was.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct CallTotals {
    /// Time of all calls, seconds.
    seconds: f64,
    /// Calls.
    calls: f64,
    /// Connections opened.
    opened: f64,
    /// Requests of the load.
    requests: f64,
}

impl CallTotals {
    /// Wait of a call, mean, seconds; `None` without calls.
    pub(crate) fn call_s(&self) -> Option<f64> {
        (self.calls > 0.0 && self.seconds > 0.0).then(|| self.seconds / self.calls)
    }

    /// Wait of a request of the load for these calls, mean, seconds.
    pub(crate) fn request_s(&self) -> f64 {
        if self.requests > 0.0 { self.seconds / self.requests } else { 0.0 }
    }

    /// Connections opened for each request of the load.
    pub(crate) fn opened_each(&self) -> f64 {
        if self.requests > 0.0 { self.opened / self.requests } else { 0.0 }
    }
}

/// Calls between services, or to something outside; of one caller and of one callee where these are named. `None` if sockets
/// show none.
pub(crate) fn calls(diagnosed: &DiagnosedTrial<'_>, caller: Option<&str>, callee: Option<&str>) -> Option<CallTotals> {
    let (graph, limit) = (diagnosed.calls?, diagnosed.limit?);
    let is_meant = |edge: &&CallEdge| {
        edge.caller != names::GENERATOR
            && edge.caller != CLIENTS
            && caller.is_none_or(|caller| edge.caller == caller)
            && callee.is_none_or(|callee| edge.callee == callee)
    };
    let mut totals: Option<CallTotals> = None;
    for edge in graph.edges.iter().filter(is_meant) {
        let levels = edge.levels.iter().zip(&limit.levels).filter(|(calls, _)| !calls.is_background);
        for (calls, level) in levels {
            totals.get_or_insert_default().add(&calls.all, level.seconds);
        }
    }
    if let Some(totals) = &mut totals {
        totals.requests = limit.levels.iter().map(|level| level.rate * level.seconds).sum();
    }
    totals
}

impl CallTotals {
    fn add(&mut self, calls: &CallFigures, seconds: f64) {
        self.seconds += calls.requests().middle() * seconds;
        self.calls += calls.rate * seconds;
        self.opened += calls.opened * seconds;
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::call_graph::{CallGraph, CallLevel};
    use narrows_model::finding::evidence::load::LoadLevel;
    use narrows_model::limit::{LevelSummary, Limit, LimitVerdict, Unclear};
    use narrows_testkit::trial::TrialBuilder;

    use super::*;

    #[test]
    fn waits_are_of_requests_and_of_calls() {
        let level = |rate: f64| LevelSummary {
            label: String::new(),
            load: LoadLevel { users: 1, arrivals: None },
            is_steady: true,
            seconds: 10.0,
            rate,
            mean_ns: 0.0,
            p50_ns: 0.0,
            p95_ns: 0.0,
            error_rate: 0.0,
            services: Vec::new(),
            threads: Vec::new(),
            machine: None,
        };
        let figures = |outstanding, rate| CallLevel {
            all: CallFigures { outstanding, rate, ..CallFigures::default() },
            ..CallLevel::default()
        };
        let edge = |caller: &str, levels| CallEdge { caller: caller.into(), callee: "bank".into(), levels };
        let levels = vec![figures(1.0, 20.0), figures(3.0, 60.0)];
        let edges = vec![edge("shop", levels.clone()), edge(names::GENERATOR, levels)];
        let graph = CallGraph { nodes: Vec::new(), edges };
        let verdict = LimitVerdict::CannotTell { because: Unclear::NoLoad };
        let limit = Limit { levels: vec![level(10.0), level(30.0)], knee: None, verdict };
        let trial = TrialBuilder::new("a").build();
        let diagnosed = DiagnosedTrial { limit: Some(&limit), calls: Some(&graph), ..DiagnosedTrial::new(&trial, &[]) };
        let totals = calls(&diagnosed, None, Some("bank")).expect("calls");
        assert_eq!((totals.call_s(), totals.request_s()), (Some(0.05), 0.1));
        assert_eq!(calls(&diagnosed, Some("bank"), None), None);
    }
}
