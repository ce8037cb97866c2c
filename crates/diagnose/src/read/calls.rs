//! The calls of a request to the outside, with everything that was tried for one of them counted as one call.
//!
//! A client library that is refused waits and tries again, and each attempt has its span. An attempt is a repetition of
//! an earlier one when that one went wrong and had ended, both request the same under the same parent, and nothing says
//! that they went to different partitions. Calls of one *kind* have the same statement or the same endpoint; what
//! differs from call to call (values, ids in a path) is kept apart, in `request`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use narrows_model::trace::{Forest, Span, SpanId, SpanKind};

use crate::critical_path::is_call;
use crate::read::repetition::values_of;
use crate::read::requests::{Query, Request, operation_of};
use crate::stats::weighted_median;

/// How much earlier than the end of a failed attempt its repetition may seem to start, nanoseconds: clocks of two
/// libraries are read at two instants.
const CLOCK_SLACK_NS: i64 = 1_000_000;

/// Maximum number of failed calls that wait for their next attempt; the oldest is given up first.
const OPEN_MAX: usize = 64;

/// A request with its calls.
#[derive(Debug)]
pub(crate) struct Handled<'a> {
    pub(crate) request: &'a Request<'a>,
    /// In order of start.
    pub(crate) calls: Vec<Call<'a>>,
}

impl<'a> Handled<'a> {
    fn new(request: &'a Request<'a>) -> Self {
        Self { request, calls: calls(request) }
    }

    /// Number of requests that it represents.
    pub(crate) fn weight(&self) -> f64 {
        self.request.trace.weight
    }

    /// Latency, at least 1 ns.
    pub(crate) fn latency_ns(&self) -> f64 {
        self.request.entry.duration_ns().max(1) as f64
    }
}

/// The requests of each operation, by service and operation.
pub(crate) fn by_operation<'a>(requests: &'a [Request<'a>]) -> BTreeMap<(&'a str, String), Vec<Handled<'a>>> {
    let mut operations: BTreeMap<(&str, String), Vec<Handled<'_>>> = BTreeMap::new();
    for request in requests {
        let key = (request.entry.service.as_str(), request.operation());
        operations.entry(key).or_default().push(Handled::new(request));
    }
    operations
}

/// The middle of a value over requests, each as often as it stands for.
pub(crate) fn median_of<T>(of: &[T], weighted: impl Fn(&T) -> (f64, f64)) -> f64 {
    weighted_median(of.iter().map(weighted).collect())
}

/// One call with its attempts.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The statement's shape, or method, address and path without ids.
    pub(crate) kind: Rc<str>,
    /// The request, values included.
    pub(crate) request: String,
    /// The span that its author would name as its parent.
    pub(crate) parent: SpanId,
    /// The query, when it is one.
    pub(crate) query: Option<&'a Query<'a>>,
    /// At least one, in order of start.
    pub(crate) attempts: Vec<&'a Span>,
    /// The calls that carried its attempts, where a client library tried again below one span; in order of start.
    pub(crate) carried: Vec<&'a Span>,
    /// The partition it went to, from whichever attempt says it.
    partition: Option<&'a str>,
}

impl<'a> Call<'a> {
    /// The last attempt: the one whose response the program got.
    pub(crate) fn last(&self) -> &'a Span {
        self.attempts[self.attempts.len() - 1]
    }

    /// True if the program got a response in the end.
    pub(crate) fn succeeded(&self) -> bool {
        !went_wrong(self.last())
    }

    pub(crate) fn start_ns(&self) -> i64 {
        self.attempts[0].start_ns
    }

    pub(crate) fn end_ns(&self) -> i64 {
        self.attempts.iter().map(|span| span.end_ns).max().unwrap_or(0)
    }

    /// The partition it went to, from whichever attempt says it.
    pub(crate) fn partition(&self) -> Option<&'a str> {
        self.partition
    }

    /// The tries, as closely as the spans show them: the calls below one span, or the attempts.
    pub(crate) fn tries(&self) -> &[&'a Span] {
        if self.carried.is_empty() { &self.attempts } else { &self.carried }
    }

    /// The server that it went to: address, port and database; `None` if no address is known.
    pub(crate) fn server(&self) -> Option<(&'a str, Option<u16>, Option<&'a str>)> {
        let facts = &self.last().facts;
        Some((facts.server_address.as_deref()?, facts.server_port, facts.db_namespace.as_deref()))
    }

    /// Each refused try with the one that followed it.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'a Span, &'a Span)> {
        self.tries().windows(2).filter(|pair| is_throttled(pair[0])).map(|pair| (pair[0], pair[1]))
    }

    fn is_open_to(&self, next: &Call<'_>) -> bool {
        let partitions = (self.partition(), next.partition());
        let first = next.attempts[0];
        let namespaces = (&self.last().facts.db_namespace, &first.facts.db_namespace);
        let is_same_place = (matches!(partitions, (None, _) | (_, None)) || partitions.0 == partitions.1)
            && namespaces.0 == namespaces.1;
        went_wrong(self.last())
            && self.last().end_ns <= first.start_ns.saturating_add(CLOCK_SLACK_NS)
            && first.facts.resend_count != Some(0)
            && (self.parent, &self.kind, &self.request) == (next.parent, &next.kind, &next.request)
            && is_same_place
    }

    /// Takes an attempt that is a repetition of it.
    fn take(&mut self, attempt: Call<'a>) {
        if self.carried.is_empty() && !attempt.carried.is_empty() {
            self.carried.clone_from(&self.attempts);
        }
        if !self.carried.is_empty() {
            self.carried.extend(attempt.tries());
        }
        self.partition = self.partition.or(attempt.partition);
        self.attempts.extend(attempt.attempts);
    }
}

/// The words by which services refuse a caller that sends too much, at the start of a type of error or a status.
const REFUSALS: [&str; 5] =
    ["429", "RESOURCE_EXHAUSTED", "Throttl", "ProvisionedThroughputExceeded", "TooManyRequests"];

/// True if an attempt was refused because the caller sends too much: status 429, `RESOURCE_EXHAUSTED` of gRPC, the
/// types of error by which stores say it, or status 503 with a time to wait.
pub(crate) fn is_throttled(span: &Span) -> bool {
    let facts = &span.facts;
    let says_so = |text: &Option<String>| {
        text.as_deref().is_some_and(|text| {
            // `com.amazonaws….ThrottlingException` as well as the plain name.
            let name = text.rsplit('.').next().unwrap_or(text);
            REFUSALS.iter().any(|word| if *word == "429" { name == *word } else { name.starts_with(word) })
        })
    };
    facts.http_status == Some(429)
        || says_so(&facts.db_status)
        || says_so(&facts.rpc_status)
        || says_so(&facts.error_type)
        || has_retry_after(span)
}

/// True if an attempt was put off: status 503 with a time to wait.
pub(crate) fn has_retry_after(span: &Span) -> bool {
    span.facts.http_status == Some(503) && span.facts.retry_after_ns.is_some()
}

pub(crate) fn went_wrong(span: &Span) -> bool {
    is_throttled(span) || span.has_failed()
}

/// The calls of a request in order of start. What happens below a query, such as the HTTP call that carries it, is part
/// of that query.
fn calls<'a>(request: &'a Request<'a>) -> Vec<Call<'a>> {
    let carried = carried(request);
    let below = below_queries(request);
    let others = request.other_calls.iter().filter(|span| !below.contains(&span.span_id));
    let queries = request.queries.iter().map(|query| of_query(query, carried.get(&query.span.span_id)));
    let mut attempts: Vec<Call<'a>> = queries.chain(others.map(|span| of_span(request, span))).collect();
    attempts.sort_by_key(Call::start_ns);
    let mut calls: Vec<Call<'a>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for attempt in attempts {
        let earlier = open.iter().position(|at| calls[*at].is_open_to(&attempt)).map(|position| open.remove(position));
        let at = match earlier {
            Some(at) => {
                calls[at].take(attempt);
                at
            }
            None => {
                calls.push(attempt);
                calls.len() - 1
            }
        };
        if !calls[at].succeeded() {
            open.push(at);
        }
        if open.len() > OPEN_MAX {
            open.remove(0);
        }
    }
    calls
}

/// Spans below others as far as `goes_on` says, each once, with the one of `from` that it is below.
fn below<'a>(
    request: &Request<'a>,
    from: impl IntoIterator<Item = SpanId>,
    goes_on: impl Fn(&Span) -> bool,
) -> Vec<(SpanId, &'a Span)> {
    let forest = request.forest;
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut open: Vec<(SpanId, usize)> = from.into_iter().filter_map(|id| Some((id, forest.find(id)?))).collect();
    while let Some((top, above)) = open.pop() {
        for at in forest.children(above).filter(|at| goes_on(forest.span(*at))) {
            if seen.insert(at) {
                found.push((top, forest.span(at)));
                open.push((top, at));
            }
        }
    }
    found
}

/// The queries and all spans below them.
fn below_queries(request: &Request<'_>) -> HashSet<SpanId> {
    let queries = request.queries.iter().map(|query| query.span.span_id);
    let found = below(request, queries.clone(), |_| true);
    found.into_iter().map(|(_, span)| span.span_id).chain(queries).collect()
}

/// The calls that carry each query, by the query's span, of queries for which something was tried again.
fn carried<'a>(request: &Request<'a>) -> HashMap<SpanId, Vec<&'a Span>> {
    let queries: HashSet<SpanId> = request.queries.iter().map(|query| query.span.span_id).collect();
    let service = &request.entry.service;
    let mut found = below(request, request.queries.iter().map(|query| query.span.span_id), |span| {
        span.service == *service && !queries.contains(&span.span_id)
    });
    found.sort_by_key(|(_, span)| span.start_ns);
    let mut carried: HashMap<SpanId, Vec<&Span>> = HashMap::new();
    for (query, span) in found {
        let calls = carried.entry(query).or_default();
        let is_next = calls.last().is_none_or(|before: &&Span| span.start_ns >= before.end_ns);
        if span.kind == SpanKind::Client && span.facts.http_method.is_some() && is_next {
            calls.push(span);
        }
    }
    carried.retain(|_, calls| calls.len() > 1 && calls.iter().any(|call| is_throttled(call)));
    carried
}

fn of_query<'a>(query: &'a Query<'a>, carried: Option<&Vec<&'a Span>>) -> Call<'a> {
    let system = query.span.facts.db_system.as_deref().unwrap_or("");
    Call {
        kind: format!("{system} {}", query.shape.text).into(),
        request: values_of(query),
        parent: query.parent,
        query: Some(query),
        attempts: vec![query.span],
        carried: carried.cloned().unwrap_or_default(),
        partition: query.span.facts.db_partition.as_deref(),
    }
}

fn of_span<'a>(request: &Request<'a>, span: &'a Span) -> Call<'a> {
    let facts = &span.facts;
    let url = facts.url.as_deref().unwrap_or("");
    let template = facts.url_template.as_ref().or(facts.http_route.as_ref());
    let path = template.cloned().unwrap_or_else(|| endpoint(url));
    let named = [facts.http_method.as_deref(), facts.server_address.as_deref(), Some(&path)];
    let mut kind = named.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if path.is_empty() {
        kind = format!("{} {kind}", name_of(request.forest, span));
    }
    if let Some(port) = facts.server_port {
        kind += &format!(" :{port}");
    }
    let parent = request.call_parents.get(&span.span_id).copied().unwrap_or(request.entry.span_id);
    Call {
        kind: kind.into(),
        request: url.to_owned(),
        parent,
        query: None,
        attempts: vec![span],
        carried: Vec::new(),
        partition: facts.db_partition.as_deref(),
    }
}

/// Name of a call without an address: its own if that says what is called, as `ml.v1.Model/Score` does, else the service
/// and operation that handle it. An attempt that fails may not be handled, so its own name comes first.
fn name_of(forest: &Forest<'_>, call: &Span) -> String {
    let handled = if call.name.contains('/') { None } else { handled_as(forest, call) };
    handled.unwrap_or_else(|| call.name.clone())
}

/// Service and operation that handle a call, if its server span arrived.
fn handled_as(forest: &Forest<'_>, call: &Span) -> Option<String> {
    let mut children = forest.children(forest.position(call)?).map(|at| forest.span(at));
    let server = children.find(|child| is_call(call, child))?;
    Some(format!("{} {}", server.service, operation_of(server)))
}

/// The path of an address without its parameters, `{}` in place of what looks like an id: parts with a digit.
pub(crate) fn endpoint(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or("");
    let path = path.split_once("://").map_or(path, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    let is_id = |part: &str| part.chars().any(|c| c.is_ascii_digit()) && !is_version(part);
    path.split('/').map(|part| if is_id(part) { "{}" } else { part }).collect::<Vec<_>>().join("/")
}

/// `v1`, `v2`.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|digits| digits.len() < 3 && digits.chars().all(|c| c.is_ascii_digit()))
}

/// Intervals of time, first instant and first instant after, in order and apart from one another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Times(Vec<(i64, i64)>);

impl Times {
    /// All instants that any of these hold.
    pub(crate) fn union_of(pieces: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let mut pieces: Vec<(i64, i64)> = pieces.into_iter().filter(|(start, end)| start < end).collect();
        pieces.sort_unstable();
        let mut joined: Vec<(i64, i64)> = Vec::new();
        for (start, end) in pieces {
            match joined.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        Self(joined)
    }

    /// Those instants that the others do not hold.
    pub(crate) fn without(&self, others: &Times) -> Self {
        let mut left = Vec::new();
        for (mut start, end) in self.0.iter().copied() {
            let from = others.0.partition_point(|(_, other_end)| *other_end <= start);
            for (other_start, other_end) in others.0[from..].iter().take_while(|(other_start, _)| *other_start < end) {
                if start < *other_start {
                    left.push((start, *other_start));
                }
                start = start.max(*other_end);
            }
            if start < end {
                left.push((start, end));
            }
        }
        Self(left)
    }

    /// Those of its intervals that are longer than this, nanoseconds.
    pub(crate) fn longer_than(&self, length_ns: f64) -> Self {
        let is_longer = |(start, end): &&(i64, i64)| end.saturating_sub(*start) as f64 > length_ns;
        Self(self.0.iter().filter(is_longer).copied().collect())
    }

    /// Total length, nanoseconds.
    pub(crate) fn length_ns(&self) -> f64 {
        self.0.iter().map(|(start, end)| end.saturating_sub(*start) as f64).sum()
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::Forest;
    use narrows_testkit::spans::{SpanBuilder, client, document_query, query, server};
    use proptest::prelude::*;

    use super::*;
    use crate::read::requests::requests;
    use crate::thresholds::Thresholds;

    const TEXT: &str = "SELECT VALUE SUM(c.hours) FROM c WHERE c.owner = @owner";

    /// Partition and number of attempts of each call.
    fn found(children: Vec<SpanBuilder>) -> Vec<(String, usize)> {
        let traces = [server("shop", "GET /").at(0.0, 900.0).children(children).trace(1)];
        let forests = Forest::of_all(&traces);
        let requests = requests(&forests, &Thresholds::default());
        let calls = calls(&requests[0]);
        calls.iter().map(|call| (call.partition().unwrap_or("").to_owned(), call.attempts.len())).collect()
    }

    #[test]
    fn what_is_tried_again_is_one_call() {
        let at = |partition: &str, start_ms| document_query(TEXT, partition).at(start_ms, 10.0);
        let again =
            vec![at("1", 0.0).throttled(Some(50.0)), at("1", 61.0).throttled(None), at("1", 90.0), at("2", 101.0)];
        assert_eq!(found(again), [("1".to_owned(), 3), ("2".to_owned(), 1)]);
        let side_by_side = vec![at("1", 0.0).throttled(None), at("2", 1.0), at("2", 12.0), at("1", 30.0)];
        assert_eq!(found(side_by_side), [("1".to_owned(), 2), ("2".to_owned(), 1), ("2".to_owned(), 1)]);
        let fresh = vec![at("1", 0.0).throttled(None), at("1", 30.0).resent(0)];
        assert_eq!(found(fresh).len(), 2, "an attempt that says it is the first is one");
        let under_way = vec![at("1", 0.0).throttled(None), at("1", 5.0)];
        assert_eq!(found(under_way).len(), 2, "the first had not ended");
    }

    #[test]
    fn the_call_that_carries_a_query_is_part_of_it() {
        let carried =
            document_query(TEXT, "1").at(0.0, 10.0).child(client("POST").url("http://store/docs").at(0.1, 9.0));
        assert_eq!(found(vec![carried, client("GET").url("http://other/").at(20.0, 5.0)]).len(), 2);
    }

    #[test]
    fn what_a_library_tries_again_below_a_query_is_seen() {
        let post = |start_ms| client("POST").url("http://store/docs").at(start_ms, 9.0);
        let tries = [post(0.5).throttled(Some(50.0)), post(60.0).throttled(Some(20.0)), post(90.0)];
        let hidden = document_query(TEXT, "1").at(0.0, 100.0).children(tries);
        let traces = [server("shop", "GET /").at(0.0, 900.0).child(hidden).trace(1)];
        let forests = Forest::of_all(&traces);
        let requests = requests(&forests, &Thresholds::default());
        let calls = calls(&requests[0]);
        assert_eq!((calls.len(), calls[0].attempts.len(), calls[0].tries().len()), (1, 1, 3));
        assert_eq!(calls[0].refusals().count(), 2);
    }

    #[test]
    fn a_refusal_has_many_words() {
        let refused =
            |set: fn(&mut narrows_model::trace::SpanFacts)| is_throttled(&client("call").facts(set).trace(1).spans[0]);
        assert!(refused(|facts| facts.http_status = Some(429)));
        assert!(refused(|facts| facts.db_status = Some("429".into())));
        assert!(refused(|facts| facts.rpc_status = Some("RESOURCE_EXHAUSTED".into())));
        assert!(refused(|facts| facts.error_type = Some("ThrottlingException".into())));
        assert!(refused(|facts| facts.error_type = Some("com.aws.ProvisionedThroughputExceededException".into())));
        assert!(refused(|facts| (facts.http_status, facts.retry_after_ns) = (Some(503), Some(5))));
        assert!(!refused(|facts| facts.http_status = Some(503)), "it is down");
        assert!(!refused(|facts| facts.error_type = Some("4290".into())));
        assert!(!refused(|facts| facts.rpc_status = Some("UNAVAILABLE".into())));
    }

    #[test]
    fn http_calls_are_distinguished_by_endpoint() {
        let get = |url: &str, start_ms| client("GET").url(url).at(start_ms, 5.0);
        let traces = [server("shop", "GET /")
            .at(0.0, 90.0)
            .children([
                get("http://127.0.0.1:9001/v1/parts/17?x=1", 0.0),
                get("http://127.0.0.1:9001/v1/parts/18", 10.0),
            ])
            .child(get("http://127.0.0.1:9001/v2/parts/18", 20.0))
            .trace(1)];
        let forests = Forest::of_all(&traces);
        let requests = requests(&forests, &Thresholds::default());
        let calls = calls(&requests[0]);
        assert_eq!(calls[0].kind, calls[1].kind);
        assert_ne!(calls[0].request, calls[1].request);
        assert_eq!((&*calls[0].kind, &*calls[2].kind), ("GET /v1/parts/{}", "GET /v2/parts/{}"));
    }

    proptest! {
        #[test]
        fn an_instant_is_left_when_only_the_first_hold_it(
            a in prop::collection::vec((0_i64..40, 0_i64..12), 0..6),
            b in prop::collection::vec((0_i64..40, 0_i64..12), 0..6),
        ) {
            let pieces = |given: &[(i64, i64)]| given.iter().map(|(from, length)| (*from, from + length)).collect::<Vec<_>>();
            let holds = |pieces: &[(i64, i64)], at: i64| pieces.iter().any(|(from, to)| (*from..*to).contains(&at));
            let (a, b) = (pieces(&a), pieces(&b));
            let left = Times::union_of(a.iter().copied()).without(&Times::union_of(b.iter().copied()));
            let expected: Vec<i64> = (0..60).filter(|at| holds(&a, *at) && !holds(&b, *at)).collect();
            prop_assert_eq!((0..60).filter(|at| holds(&left.0, *at)).collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(left.length_ns(), expected.len() as f64);
        }
    }

    #[test]
    fn times_join_and_are_taken_away() {
        let times = Times::union_of([(5, 10), (0, 3), (2, 6), (20, 30), (40, 40)]);
        assert_eq!(times, Times(vec![(0, 10), (20, 30)]));
        let left = times.without(&Times::union_of([(1, 2), (8, 22), (29, 50)]));
        assert_eq!(left, Times(vec![(0, 1), (2, 8), (22, 29)]));
        assert_eq!(left.length_ns(), 14.0);
        assert_eq!(times.without(&Times::default()), times);
    }

    #[test]
    fn a_call_that_ends_at_the_end_of_time_is_one_call() {
        let mut trace = server("shop", "GET /").at(0.0, 900.0).child(query("SELECT a FROM t").failed()).trace(1);
        let entry = trace.spans[0].span_id;
        let mut again = trace.spans[1].clone();
        again.span_id = [9; 8];
        for span in [&mut trace.spans[1], &mut again] {
            (span.start_ns, span.end_ns, span.parent_id) = (i64::MAX, i64::MIN, Some(entry));
        }
        trace.spans.push(again);
        let traces = [trace];
        let forests = Forest::of_all(&traces);
        let requests = requests(&forests, &Thresholds::default());
        assert_eq!(calls(&requests[0]).len(), 1);
    }
}
