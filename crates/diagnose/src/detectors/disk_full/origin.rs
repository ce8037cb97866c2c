//! The origin of an error in a trace, and the owner of the full disk.
//!
//! Callers pass errors on, so the deepest span that reports one counts. A call reports its callee's error if the callee
//! failed too. If the callee succeeded, or the call got no response, the failure is in the caller, which has a disk as
//! well. If a callee gives no reason for its failure, the caller's text gives it.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::disk_full::Owner;
use narrows_model::trace::{Forest, Span, SpanKind, Trace};

use super::reports::{DiskReport, reported};
use crate::read::calls::went_wrong;
use crate::read::databases::name_of;
use crate::read::errors::{deepest, exceptions};
use crate::read::requests::is_database;

/// Databases that run in the process of the service that queries them.
const EMBEDDED: [&str; 5] = ["sqlite", "duckdb", "h2", "derby", "rocksdb"];

/// An operation that failed because a disk is full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) trace: &'a Trace,
    /// The span that reports it.
    pub(super) span: &'a Span,
    pub(super) report: DiskReport<'a>,
    pub(super) owner: Owner,
    /// The service or server that has the disk.
    pub(super) place: &'a str,
    /// Server or consumer span of the affected request, in the service that reports the error.
    pub(super) entry: &'a Span,
}

/// The operations of a trace that failed because of a full disk, in order of start, each once.
pub(super) fn origins<'a>(trial: &'a TrialEvidence, forest: &'a Forest<'a>) -> Vec<Origin<'a>> {
    let spans = deepest(forest.trace(), |span| reported(span).is_some());
    if spans.is_empty() {
        return Vec::new();
    }
    let search = Search { trial, forest };
    let mut found: Vec<Origin<'a>> = Vec::new();
    for span in spans {
        let (Some(report), Some(at)) = (reported(span), search.forest.position(span)) else { continue };
        let (owner, place) = search.place(at, Forest::DEPTH_MAX);
        // Spans of one call from two libraries overlap.
        let is_double = |known: &&Origin<'_>| {
            let is_same = known.place == place && known.span.service == span.service;
            is_same && known.span.scope != span.scope && span.start_ns < known.span.end_ns
        };
        if found.iter().rev().find(is_double).is_none() {
            found.push(Origin { trace: forest.trace(), span, report, owner, place, entry: search.entry(at) });
        }
    }
    found
}

/// The spans of a trace in their trial.
struct Search<'a> {
    trial: &'a TrialEvidence,
    forest: &'a Forest<'a>,
}

impl<'a> Search<'a> {
    /// The nearest server or consumer span at or above this one; without one, the topmost span.
    fn entry(&self, at: usize) -> &'a Span {
        let mut top = at;
        let entry = self.forest.upwards(at).inspect(|above| top = *above).find(|at| is_entry(self.forest.span(*at)));
        self.forest.span(entry.unwrap_or(top))
    }

    /// Owner and name of the full disk that this span reports.
    fn place(&self, at: usize, depth_max: u32) -> (Owner, &'a str) {
        let span = self.forest.span(at);
        let here = (Owner::Service, span.service.as_str());
        if depth_max == 0 {
            return here;
        }
        if is_database(span) {
            return if is_embedded(span) { here } else { (Owner::Server, name_of(self.trial, span)) };
        }
        let handled = self.forest.children(at).find(|below| self.forest.span(*below).kind == SpanKind::Server);
        match handled.filter(|_| span.kind == SpanKind::Client) {
            Some(handled) if went_wrong(self.forest.span(handled)) => self.place(handled, depth_max - 1),
            Some(_) => here,
            None => match self.silent_call(at) {
                Some(call) => self.place(call, depth_max - 1),
                None if is_refused(span) => (Owner::Server, self.called(span)),
                None => here,
            },
        }
    }

    /// The last call below a span, in the span's own service, that failed without a reason.
    fn silent_call(&self, at: usize) -> Option<usize> {
        let service = &self.forest.span(at).service;
        let is_silent = |span: &Span| went_wrong(span) && !gives_reason(span);
        let mut open = vec![at];
        let mut last: Option<usize> = None;
        while let Some(above) = open.pop() {
            for at in self.forest.children(above) {
                let below = self.forest.span(at);
                if below.service != *service || is_entry(below) {
                    continue;
                }
                if !is_call(below) {
                    open.push(at);
                } else if is_silent(below) && last.is_none_or(|last| self.forest.span(last).end_ns < below.end_ns) {
                    last = Some(at);
                }
            }
        }
        last
    }

    fn called(&self, call: &'a Span) -> &'a str {
        let facts = &call.facts;
        let listens = self.trial.reached_at(facts.server_port).map(|instance| instance.service.as_str());
        let said = [&facts.peer_service, &facts.server_address, &facts.messaging_system];
        listens.or_else(|| said.into_iter().flatten().next().map(String::as_str)).unwrap_or(&call.name)
    }
}

fn is_entry(span: &Span) -> bool {
    matches!(span.kind, SpanKind::Server | SpanKind::Consumer)
}

fn is_call(span: &Span) -> bool {
    is_database(span) || matches!(span.kind, SpanKind::Client | SpanKind::Producer)
}

/// Whether a database, such as SQLite, writes to the disk of the service itself.
fn is_embedded(span: &Span) -> bool {
    span.facts.db_system.as_deref().is_some_and(|system| EMBEDDED.contains(&system))
}

/// Whether the callee reported the failure.
fn is_refused(span: &Span) -> bool {
    let facts = &span.facts;
    let is_broker =
        span.kind == SpanKind::Producer || span.kind == SpanKind::Client && facts.messaging_system.is_some();
    is_broker
        || span.kind == SpanKind::Client
            && (facts.http_status.is_some_and(|status| status >= 500)
                || facts.rpc_status.as_deref().is_some_and(|status| status != "OK"))
}

/// Whether a span gives more reason for its failure than a response status.
fn gives_reason(span: &Span) -> bool {
    let facts = &span.facts;
    let status = facts.http_status.map(|status| status.to_string());
    let is_status = |text: &str| {
        facts.rpc_status.as_deref() == Some(text) || status.as_deref().is_some_and(|status| text.contains(status))
    };
    let message = span.status_message.as_str();
    let is_silent = message.is_empty() || is_status(message) || message.eq_ignore_ascii_case("internal server error");
    !is_silent
        || exceptions(span).any(|one| !is_status(one.message))
        || facts.db_status.is_some()
        || facts.error_type.as_deref().is_some_and(|kind| kind != "_OTHER" && !is_status(kind))
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{SpanBuilder, client, internal, query, server};
    use narrows_testkit::trial::{FIRST_PORT, TrialBuilder};

    use super::*;

    const TEXT: &str = "no space left on device";

    /// Owner and place of each origin, in a trial of the services `shop` and `files`.
    fn places(root: SpanBuilder) -> Vec<(Owner, String)> {
        let trial = TrialBuilder::new("a").service("shop", None).service("files", None).build();
        let trace = root.at(0.0, 100.0).trace(1);
        origins(&trial, &Forest::new(&trace))
            .into_iter()
            .map(|origin| (origin.owner, origin.place.to_owned()))
            .collect()
    }

    fn of(owner: Owner, place: &str) -> Vec<(Owner, String)> {
        vec![(owner, place.to_owned())]
    }

    fn shop(child: SpanBuilder) -> SpanBuilder {
        server("shop", "POST /").failed_with(TEXT).child(child.at(1.0, 50.0))
    }

    fn put() -> SpanBuilder {
        client("PUT").url("http://files/7").facts(|facts| facts.http_status = Some(500)).failed()
    }

    #[test]
    fn the_deepest_report_counts() {
        let files = server("files", "PUT /").failed_with(TEXT).child(internal("write").failed_with(TEXT).at(3.0, 1.0));
        assert_eq!(places(shop(put().child(files.at(2.0, 9.0)))), of(Owner::Service, "files"));
        assert_eq!(places(shop(internal("render"))), of(Owner::Service, "shop"));
    }

    #[test]
    fn a_callee_without_a_reason_is_the_origin() {
        let silent = server("files", "PUT /").failed().at(2.0, 9.0);
        assert_eq!(places(shop(put().child(silent.clone()))), of(Owner::Service, "files"));
        let status = put().failed_with("Request failed with status code 500").to_port(FIRST_PORT + 1);
        assert_eq!(places(shop(status)), of(Owner::Server, "files"));
        let inner = silent.child(query("INSERT INTO t").failed().at(3.0, 4.0));
        assert_eq!(places(shop(put().child(inner))), of(Owner::Server, "postgresql"));
    }

    #[test]
    fn a_callee_with_another_reason_is_not() {
        let refused = put().failed_with("connection refused").facts(|facts| facts.http_status = None);
        assert_eq!(places(shop(refused)), of(Owner::Service, "shop"));
        let timed_out = put().facts(|facts| facts.error_type = Some("TimeoutError".into()));
        assert_eq!(places(shop(timed_out)), of(Owner::Service, "shop"));
    }

    #[test]
    fn a_call_names_the_disk_of_the_service_that_failed() {
        let download = client("GET").failed_with(TEXT);
        let fine = server("files", "GET /").at(2.0, 9.0);
        assert_eq!(places(shop(download.clone().child(fine))), of(Owner::Service, "shop"), "it could not keep it");
        assert_eq!(places(shop(download.clone())), of(Owner::Service, "shop"));
        let at_port = put().failed_with(TEXT).to_port(FIRST_PORT + 1);
        assert_eq!(places(shop(at_port)), of(Owner::Server, "files"));
        let produced = SpanBuilder::of_kind(SpanKind::Producer, "send").failed_with("KafkaStorageException");
        let produced = produced.facts(|facts| facts.messaging_system = Some("kafka".into()));
        assert_eq!(places(shop(produced)), of(Owner::Server, "kafka"));
    }

    #[test]
    fn an_embedded_database_is_on_the_disk_of_its_service() {
        let insert = || query("INSERT INTO t").failed_with("database or disk is full");
        let sqlite = insert().facts(|facts| facts.db_system = Some("sqlite".into()));
        assert_eq!(places(shop(sqlite)), of(Owner::Service, "shop"));
        assert_eq!(places(shop(insert())), of(Owner::Server, "postgresql"));
    }

    #[test]
    fn one_operation_counts_once() {
        let insert = |scope: &str| query("INSERT INTO t").failed_with(TEXT).scope(scope);
        let twice = [insert("sqlalchemy").at(1.0, 9.0), insert("psycopg2").at(1.1, 8.0)];
        assert_eq!(places(server("shop", "POST /").failed().children(twice)).len(), 1);
        let again = [insert("psycopg2").at(1.0, 9.0), insert("psycopg2").at(20.0, 8.0)];
        assert_eq!(places(server("shop", "POST /").failed().children(again)).len(), 2);
    }

    #[test]
    fn broken_traces_are_survived() {
        let trial = TrialBuilder::new("a").build();
        let mut trace = server("shop", "POST /").failed_with(TEXT).child(internal("a").child(internal("b"))).trace(1);
        trace.spans[0].parent_id = Some(trace.spans[2].span_id);
        assert_eq!(origins(&trial, &Forest::new(&trace)).len(), 1);
    }
}
