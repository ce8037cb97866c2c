//! Texts of `chatty-http` findings.

use narrows_model::finding::evidence::chatty_http::{ChattyHttp, Items};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, operation};

impl Words for ChattyHttp {
    fn title(&self, finding: &Finding) -> String {
        let (operation, callee, calls) = (operation(finding), callee(self), self.calls.median);
        match self.items {
            Items::Same => format!("{operation} calls {callee} {calls} times for the same thing in each request"),
            Items::Different | Items::Unknown => {
                let at_once = if self.at_once > 1 { format!(", {} at a time", self.at_once) } else { String::new() };
                format!("{operation} calls {callee} once for each item: {calls} calls in each request{at_once}")
            }
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the latency of {}", operation(finding))
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let mut reasons = vec![format!(
            "{} of the traces of {} show it ({} traces): {} calls of one endpoint under one parent{}.",
            units::percent(self.trace_share),
            operation(finding),
            self.traces,
            self.calls.median,
            match self.items {
                Items::Different => ", each with another id",
                Items::Same => ", all with one address",
                Items::Unknown => "",
            }
        )];
        if self.calls.vary() {
            reasons.push(format!(
                "Their number differs from request to request, from {} to {}, as it does when it depends on the items \
                 of an earlier response.",
                self.calls.least, self.calls.most
            ));
        }
        if self.is_after_another && self.items != Items::Same {
            reasons.push(
                "Another call of the request ends before the first of them and may have returned the ids.".into(),
            );
        }
        if self.begin_together {
            reasons.push(format!(
                "They all begin together, but about {} run at a time: the others wait for a connection of the client or \
                 for a free place at {}.",
                self.at_once,
                callee(self)
            ));
        }
        reasons.push(format!(
            "With short gaps between them they take {} of a request, and they are {} of all calls to {} in these traces.",
            units::duration(self.cost_ns),
            units::percent(self.callee_share),
            callee(self)
        ));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        vec![
            Figure::new("calls in each request, median", self.calls.median as f64, ""),
            Figure::new("calls in each request, smallest", self.calls.least as f64, ""),
            Figure::new("calls in each request, largest", self.calls.most as f64, ""),
            Figure::new("calls at a time, median", self.at_once as f64, ""),
            Figure::new("time of these calls, median", self.busy_ns, "ns"),
            Figure::new("time of these calls and of short gaps between them, median", self.cost_ns, "ns"),
            Figure::new("latency of the operation, median", self.latency_ns, "ns"),
            Figure::new("traces of the operation that show it", self.trace_share * 100.0, "%"),
            Figure::new("share of all calls to it", self.callee_share * 100.0, "%"),
        ]
    }

    fn source_text(&self) -> Option<String> {
        let address = self.address.as_ref().map(|address| format!("\n\nsuch as: {address}"));
        Some(self.endpoint.clone() + &address.unwrap_or_default())
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![
            "Attempts after a failure: they count as one call. Stacked libraries: a call that two of them report \
             counts once."
                .to_owned(),
            "A fan-out to several hosts: all calls go to one host.".into(),
            match self.begin_together {
                true => "A prefetch that waits for the slowest call only: the calls end in turn.".into(),
                false => "A prefetch: some of the calls begin after the first has ended.".into(),
            },
        ];
        let of_items = match self.items {
            Items::Different => {
                Some("Pages, polling and batches: no address continues another, is repeated, or lists several ids.")
            }
            Items::Same => Some("Polling: the calls follow one another without pauses, and each succeeds."),
            Items::Unknown => None,
        };
        ruled_out.extend(of_items.map(str::to_owned));
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!(
            "The items are requested together and {} is as slow as before, or its traces still contain about {} of \
             these calls.",
            operation(finding),
            self.calls.median
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        let place = format!("In the code behind {} of {}, call {}", operation(finding), finding.resource, callee(self));
        match self.items {
            Items::Same => format!(
                "{place} once and keep the response for the rest of the request, or for as long as a stale one is \
                 acceptable."
            ),
            Items::Different | Items::Unknown => format!(
                "{place} once for all items: an endpoint that takes a list of ids, or one that returns them with the \
                 list they come from (expand, include, a dataloader). If it has no such endpoint, {}; that saves the \
                 waiting, but not the calls.",
                if self.at_once > 1 {
                    "let more of them run at a time, as far as it can serve them: raise the client's limit of connections \
                     to one host (maxSockets, MaxConnectionsPerServer, maxRequestsPerHost)"
                } else {
                    "make several calls in parallel, with a limit"
                }
            ),
        }
    }
}

fn callee(evidence: &ChattyHttp) -> &str {
    evidence.callee.as_deref().unwrap_or("another service")
}
