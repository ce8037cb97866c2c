//! Texts of `sequential-calls` findings.

use narrows_model::finding::evidence::sequential_calls::{PeerCalls, SequentialCalls};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, bounds, operation};
use crate::exemplars::clipped;
use crate::sentence::list;

/// Maximum characters of a statement in a title and in advice.
const STATEMENT_CHARS_MAX: usize = 60;

impl Words for SequentialCalls {
    fn title(&self, finding: &Finding) -> String {
        let name = &finding.resource;
        match self.peers.as_slice() {
            [one] => match &one.statement {
                Some(statement) => format!(
                    "{name} sends {} {} statements of one shape for each request, one after another: {}",
                    one.peer,
                    calls(one),
                    clipped(&statement.text, STATEMENT_CHARS_MAX)
                ),
                None => {
                    format!("{name} calls {} {} times for each request, one call after another", one.peer, calls(one))
                }
            },
            several => {
                let peers: Vec<String> = several.iter().map(|one| one.peer.clone()).collect();
                format!(
                    "{name} calls {} one after another: {} of each request",
                    list(&peers),
                    units::duration(self.request_ns)
                )
            }
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the latency of {}", operation(finding))
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let mut reasons = vec![format!(
            "In {}, {} of {} requests under way wait for these calls, as the sockets of {} show: {} per request.",
            self.reading.interval,
            bounds(self.reading.waiting),
            units::number(self.reading.in_flight),
            finding.resource,
            units::duration(self.request_ns)
        )];
        for one in self.peers.iter().filter(|_| self.peers.len() > 1) {
            reasons.push(format!(
                "It waits {} for a call of {}, {} per request.",
                units::duration(one.call_ns.middle()),
                one.peer,
                calls(one)
            ));
        }
        reasons.push(format!(
            "One call is under way at a time: {} for each request at work.",
            units::number(self.at_once)
        ));
        reasons
    }

    fn figures(&self, finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("calls for each request, mean", self.per_request(), ""),
            Figure::new("wait of a request for these calls, mean", self.request_ns, "ns"),
            Figure::new("calls under way for each request at work", self.at_once, ""),
            Figure::new("share of the latency", finding.cost_share * 100.0, "%"),
        ];
        for one in &self.peers {
            figures.push(Figure::new(format!("wait for a call of {}, mean", one.peer), one.call_ns.middle(), "ns"));
        }
        figures
    }

    fn source_text(&self) -> Option<String> {
        self.peers.iter().find_map(|one| Some(one.statement.as_ref()?.text.clone()))
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![
            "Calls at the same time: more calls than requests would be under way.".to_owned(),
            "Calls in the background: none takes longer than the slowest request of the load.".to_owned(),
        ];
        if self.peers.iter().any(|one| one.statement.is_some()) {
            ruled_out.push("Different statements: the database counts executions by statement.".to_owned());
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let operation = operation(finding);
        match self.peers.as_slice() {
            [_] => format!("With one call in place of these, {operation} takes as long as before."),
            _ => format!("With these calls made at the same time, {operation} takes as long as before."),
        }
    }

    fn advice(&self, finding: &Finding) -> String {
        match self.peers.as_slice() {
            [one] if one.statement.is_some() => format!(
                "Fetch the rows together in {}: one query with a JOIN or an IN list of the keys, eager loading of an \
                 object-relational mapper, or a cache of what is read again and again.",
                finding.resource
            ),
            [one] => format!(
                "Call {} once for all items of a request (a batch endpoint, a list of ids, a pipeline), cache its responses, \
                 or make the calls at the same time.",
                one.peer
            ),
            _ => format!(
                "Make the calls that do not need one another's results at the same time in {}: the request then waits \
                 for the slowest only.",
                finding.resource
            ),
        }
    }
}

/// Calls for each request, for people.
fn calls(one: &PeerCalls) -> String {
    units::number(one.count())
}
