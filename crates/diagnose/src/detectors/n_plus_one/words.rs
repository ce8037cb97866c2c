//! Texts of `n-plus-one` findings.

use narrows_model::finding::evidence::n_plus_one::{Access, NPlusOne, Values};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, operation};
use crate::exemplars::clipped;

/// Maximum characters of a statement in a title; the source text has more of it.
const STATEMENT_CHARS_MAX: usize = 60;

impl Words for NPlusOne {
    fn title(&self, finding: &Finding) -> String {
        let verb = match self.statement.access {
            Access::Write => "writes rows one at a time",
            Access::Read => "fetches rows one at a time",
        };
        format!("{} {verb}: {} similar queries in each request", operation(finding), self.queries.median)
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the latency of {}", operation(finding))
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let after = if self.after.is_some() { "after another query, " } else { "" };
        let mut reasons = vec![format!(
            "{} of the traces of {} that query a database show it ({} traces): {after}{} queries of one shape follow \
             under one parent.",
            units::percent(self.trace_share),
            operation(finding),
            self.traces,
            self.queries.median
        )];
        if self.queries.vary() {
            let on = if self.after.is_some() { "an earlier result" } else { "the request" };
            reasons.push(format!(
                "Their number differs from request to request, from {} to {}, as it does when it depends on the rows of \
                 {on}.",
                self.queries.least, self.queries.most
            ));
        }
        if self.values == Values::Different {
            reasons.push("Their values differ from query to query, at least in some of these requests.".into());
        }
        reasons
            .push(format!("They are {} of all queries in the traces of this trial.", units::percent(self.query_share)));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        vec![
            Figure::new("queries in each request, median", self.queries.median as f64, ""),
            Figure::new("queries in each request, smallest", self.queries.least as f64, ""),
            Figure::new("queries in each request, largest", self.queries.most as f64, ""),
            Figure::new("time of these queries, median", self.busy_ns, "ns"),
            Figure::new("time of these queries and of short gaps between them, median", self.cost_ns, "ns"),
            Figure::new("traces of the operation with queries that show it", self.trace_share * 100.0, "%"),
            Figure::new("share of all queries", self.query_share * 100.0, "%"),
        ]
    }

    fn source_text(&self) -> Option<String> {
        let mut text = self.statement.shape.clone();
        if let Some(sent) = &self.statement.sent {
            text += &format!("\n\nas sent: {sent}");
        }
        if let Some(after) = &self.after {
            text += &format!("\n\nafter: {after}");
        }
        Some(text)
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![
            double_instrumentation(self),
            format!(
                "Connections, pools and transactions: {} such spans in these traces, none counted as a query.",
                units::count(self.housekeeping_spans as u64)
            ),
            "Pages and batches: the statement has no offset, no cursor and no list of several values.".into(),
        ];
        if self.values == Values::Different {
            ruled_out.push("The same query repeated: the values differ, at least in some of these requests.".into());
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!(
            "The rows are fetched together and {} is as slow as before, or its traces still contain about {} of these \
             queries.",
            operation(finding),
            self.queries.median
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        format!(
            "In the code behind {} of {}, replace the repeated `{}` by {}",
            operation(finding),
            finding.resource,
            clipped(&self.statement.shape, STATEMENT_CHARS_MAX),
            replacement(self.statement.system.as_deref().unwrap_or(""), self.statement.access)
        )
    }
}

/// Replacement for many statements, in the terms of the database system.
fn replacement(system: &str, access: Access) -> &'static str {
    match (system, access) {
        ("redis" | "valkey", Access::Read) => {
            "one command for all keys (MGET for strings), or a pipeline, which sends many commands in one round trip."
        }
        ("redis" | "valkey", Access::Write) => {
            "one command for all keys: MSET, HSET with several fields, or a pipeline, which sends many commands in one \
             round trip."
        }
        ("mongodb", Access::Read) => {
            "one query for all documents: find with $in over the ids, $lookup in an aggregation, or populate in Mongoose, \
             which sends one query for each path."
        }
        ("mongodb", Access::Write) => "one command for all documents: insertMany or bulkWrite.",
        ("elasticsearch" | "opensearch", Access::Read) => {
            "one request for all documents: a terms query over the values, _mget by ids, or _msearch."
        }
        ("elasticsearch" | "opensearch", Access::Write) => "one request for all documents: _bulk.",
        (_, Access::Write) => {
            "one statement for all rows: a multi-row INSERT, a batch (JDBC addBatch, SQLAlchemy insertmanyvalues), or \
             COPY."
        }
        (_, Access::Read) => {
            "one query for all rows: a JOIN with the query before it, or one look-up with an IN list of the keys. With an \
             object-relational mapper, use eager loading: SQLAlchemy selectinload, JPA @EntityGraph or JOIN FETCH, Rails \
             includes, Django prefetch_related; with GraphQL a dataloader."
        }
    }
}

fn double_instrumentation(evidence: &NPlusOne) -> String {
    // Spans of some formats say no scope.
    let scopes: Vec<&str> = evidence.scopes.iter().map(String::as_str).filter(|scope| !scope.is_empty()).collect();
    let scopes = if scopes.is_empty() { String::new() } else { format!(" ({})", scopes.join(", ")) };
    if evidence.spans_per_query > 1.0 {
        let spans = units::number(evidence.spans_per_query);
        format!("Double instrumentation: {spans} spans for each query{scopes}, counted once.")
    } else {
        format!("Double instrumentation: each query has one span{scopes}.")
    }
}
