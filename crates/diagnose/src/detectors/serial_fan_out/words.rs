//! Texts of `serial-fan-out` findings.

use narrows_model::finding::evidence::serial_fan_out::{Destinations, SerialFanOut, Target};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, operation};

impl Words for SerialFanOut {
    fn title(&self, finding: &Finding) -> String {
        let (operation, calls) = (operation(finding), self.calls);
        match (self.target, self.destinations) {
            (Target::Database, Destinations::Partitions) => {
                format!("{operation} queries {calls} partitions one after another")
            }
            (Target::Database, _) => {
                format!("{operation} makes {calls} similar queries one after another")
            }
            (Target::Service, Destinations::Addresses) => {
                format!("{operation} calls {calls} addresses one after another")
            }
            (Target::Service, _) => format!("{operation} makes {calls} similar calls one after another"),
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the latency of {}", operation(finding))
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let calls = if self.destinations == Destinations::Addresses { "calls" } else { "similar calls" };
        let mut reasons = vec![
            format!(
                "{} of the traces of {} show it ({} traces): {} {calls} under one parent, no two of them at the \
                 same time.",
                units::percent(self.trace_share),
                operation(finding),
                self.traces,
                self.calls
            ),
            format!(
                "Together they take {}, the longest of them {}: in parallel they would save {}.",
                units::duration(self.calls_ns),
                units::duration(self.longest_ns),
                units::duration(self.saving_ns)
            ),
        ];
        match self.destinations {
            Destinations::Partitions => {
                reasons.push("Each sends the same request to a different partition.".into());
            }
            Destinations::Addresses => reasons.push(
                "Each is a GET of a different address that nothing of an earlier response is part of: it is the same in \
                 every request, but for what the request itself brings."
                    .into(),
            ),
            Destinations::Unknown => {}
        }
        if self.has_fixed_count() {
            reasons.push(format!(
                "Their number is the same in {} of these traces, as it is when it depends on the program and not on a \
                 response.",
                units::percent(self.same_count_share)
            ));
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        vec![
            Figure::new("sequential calls, median", self.calls as f64, ""),
            Figure::new("time of these calls, median", self.calls_ns, "ns"),
            Figure::new("time of the longest call, median", self.longest_ns, "ns"),
            Figure::new("time saved in parallel, median", self.saving_ns, "ns"),
            Figure::new("latency of the operation, median", self.latency_ns, "ns"),
            Figure::new("traces of the operation that show it", self.trace_share * 100.0, "%"),
        ]
    }

    fn source_text(&self) -> Option<String> {
        Some(self.text.clone())
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![
            "Attempts after a rejection or an error: they count as one call, and the waits between them are not \
             counted."
                .to_owned(),
        ];
        if self.target == Target::Database {
            ruled_out.push("Rows of an earlier result (n-plus-one): the calls send the same values.".into());
            ruled_out.push("A transaction: these traces contain none.".into());
        }
        ruled_out.push(match self.destinations {
            Destinations::Partitions => "Pages: no partition is queried twice.".into(),
            Destinations::Addresses => "Calls that prepare or check others: an address that is called again does not \
                                        count."
                .into(),
            Destinations::Unknown => {
                "Pages: neither the statement nor the address continues from an earlier response.".into()
            }
        });
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!(
            "The calls are made in parallel and {} is as slow as before, or a call turns out to need the response to \
             the one before it.",
            operation(finding)
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        let place = format!("In the code behind {} of {}", operation(finding), finding.resource);
        match self.destinations {
            Destinations::Partitions => format!(
                "{place}, let the client library query the partitions in parallel: a higher degree of parallelism \
                 (maxDegreeOfParallelism, MaxConcurrency), -1 where that means “as many as useful”. Better still, name \
                 the partition that has the rows in the query."
            ),
            Destinations::Addresses | Destinations::Unknown => format!(
                "{place}, start the calls together and wait for all of them: Promise.all, asyncio.gather, \
                 Task.WhenAll, CompletableFuture.allOf, errgroup; with a limit on parallel calls where there can be \
                 many."
            ),
        }
    }
}
