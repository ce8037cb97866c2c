//! Texts of `duplicate-query` findings.

use narrows_model::finding::evidence::duplicate_query::{DuplicateQuery, Sameness};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, operation};
use crate::exemplars::clipped;

/// Maximum characters of a statement in a title; the source text has more of it.
const STATEMENT_CHARS_MAX: usize = 60;

impl Words for DuplicateQuery {
    fn title(&self, finding: &Finding) -> String {
        let more = match self.statements {
            0 | 1 => String::new(),
            statements => format!(" and {} more", statements - 1),
        };
        format!(
            "{} sends the same query {} in each request: {}{more}",
            operation(finding),
            times(self.sends),
            clipped(&self.shape, STATEMENT_CHARS_MAX)
        )
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the latency of {}", operation(finding))
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let same = match self.sameness {
            Sameness::NoValues => "The statement has no values, so the queries are the same.",
            Sameness::Values => "The values are the same.",
            Sameness::Rows => {
                "In every request, each of these queries returns as many rows as the first, and the number differs from \
                 request to request."
            }
        };
        vec![
            format!(
                "{} of the requests of {} that query a database send queries again ({} traces), each {} more (median).",
                units::percent(self.request_share),
                operation(finding),
                self.traces,
                if self.repeats.median == 1 { "once".to_owned() } else { times(self.repeats.median) }
            ),
            same.into(),
            format!("The repeats are {} of all queries in the traces of this trial.", units::percent(self.query_share)),
        ]
    }

    fn figures(&self, finding: &Finding) -> Vec<Figure> {
        vec![
            Figure::new("repeats in each request, median", self.repeats.median as f64, ""),
            Figure::new("repeats in each request, smallest", self.repeats.least as f64, ""),
            Figure::new("repeats in each request, largest", self.repeats.most as f64, ""),
            Figure::new("time of a request in repeats, median", self.repeats_ns, "ns"),
            Figure::new("latency of such a request, median", self.latency_ns, "ns"),
            Figure::new("share of the latency", finding.cost_share * 100.0, "%"),
            Figure::new("share of all queries", self.query_share * 100.0, "%"),
            Figure::new("statements that are repeated", self.statements as f64, ""),
        ]
    }

    fn source_text(&self) -> Option<String> {
        Some(self.sent.clone())
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec![
            "Double instrumentation: each repeat starts after the query before it has ended.".into(),
            "A read after a write: no statement in between writes to a table of the query, and no call in between may."
                .into(),
            "Retries: nothing in between failed or was rolled back.".into(),
            "Polling: the request does not pause before a repeat.".into(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!(
            "Each request keeps the first result, and {} is as slow as before, or its traces still show the repeats.",
            operation(finding)
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        format!(
            "In the code behind {} of {}, keep the result of `{}` for the rest of the request: pass it on, or put it \
             into a cache with the lifetime of a request. With an object-relational mapper, use one session for each \
             request, and load by key, which a session serves from memory, instead of by a query, which it sends again.",
            operation(finding),
            finding.resource,
            clipped(&self.shape, STATEMENT_CHARS_MAX)
        )
    }
}

fn times(times: usize) -> String {
    match times {
        2 => "twice".to_owned(),
        times => format!("{times} times"),
    }
}
