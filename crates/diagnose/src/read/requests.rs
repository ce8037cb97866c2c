//! Traces cut into requests, each with the database queries that its service's code made.
//!
//! Between the code and the spans are instrumentation libraries, which distort the picture: stacked ones (SQLAlchemy
//! over psycopg2, Hibernate over JDBC) report each query twice, pools add a `connect` before each query, transactions
//! add `BEGIN`, frameworks add a span per middleware and one per repository call. This module undoes that: a query that
//! two libraries report counts once, spans that are not queries are set aside and counted, and each query gets the
//! parent that its author would name. Calls over HTTP and to remote methods are treated alike: stacked clients
//! (requests over urllib3, gRPC over HTTP/2) count once. A span that contains several calls for its own request is a
//! library that retries; its calls count and it does not.
//!
//! The *entry* of a request is the nearest server or consumer span above a query in the same service; without one, the
//! topmost span of that service. The *logical parent* of a query is the nearest span above it, up to the entry, that is
//! neither noise nor a wrapper. A wrapper is an internal span that holds one query only or that has a sibling of the
//! same name: the call of a repository, one per row.
//!
//! A query without text is identified by its span's name if its attributes name operation and collection, as those of
//! mappers do. Other queries without text are set aside; their names often contain only the database, so they are not
//! used. Spans that at least name their operation, as those of key-value stores do, count as calls, not as queries.
//!
//! Some tracers give a call's span a separate service, such as `mysql`. A call belongs to the service of its parent
//! span, unless the parent is a call too: then the other side makes this call.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use narrows_model::finding::Caveat;
use narrows_model::trace::{Forest, Span, SpanId, SpanKind, Trace, is_step_of_call};

use crate::read::doubles::{Limits, is_same_remote_call};
use crate::read::shapes::{Shape, Statement};
use crate::thresholds::Thresholds;

/// Number of earlier queries that a span is compared with to find its double.
const DOUBLES_LOOK_BACK: usize = 32;

/// One request as one service handled it.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The trees of its trace.
    pub(crate) forest: &'a Forest<'a>,
    /// The trace it is in.
    pub(crate) trace: &'a Trace,
    /// The span that stands for the whole request in this service.
    pub(crate) entry: &'a Span,
    /// Its queries in order of start, each once.
    pub(crate) queries: Vec<Query<'a>>,
    /// Its other calls to the outside, in order of start, except those that queries lie below.
    pub(crate) other_calls: Vec<&'a Span>,
    /// The spans that the author of those would name as their parents.
    pub(crate) call_parents: HashMap<SpanId, SpanId>,
    /// Spans of connections, pools and transactions that were set aside, in order of start.
    pub(crate) housekeeping: Vec<&'a Span>,
}

/// One query as the program made it.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    /// The first span that reported it.
    pub(crate) span: &'a Span,
    /// Its text as recorded: see [`query_text`].
    pub(crate) text: &'a str,
    /// Its shape.
    pub(crate) shape: Rc<Shape>,
    /// The instrumentation scopes that reported it, one or more.
    pub(crate) scopes: Vec<&'a str>,
    /// The span that its author would name as its parent.
    pub(crate) parent: SpanId,
}

impl Request<'_> {
    /// The operation: method and route, or the entry's name.
    pub(crate) fn operation(&self) -> String {
        operation_of(self.entry)
    }

    /// From the start of a call to its end or, if that is earlier, to the end of the request, which waits no longer.
    pub(crate) fn time_of(&self, call: &Span) -> (i64, i64) {
        (call.start_ns, call.end_ns.min(self.entry.end_ns))
    }
}

/// Time after its request's end when a call still counts as ending with it, nanoseconds: libraries end spans late.
const OVERHANG_NS: i64 = 1_000_000;

/// Flags calls that go on after their requests; `None` if none does.
pub(crate) fn cut_at_end<'r>(calls: impl Iterator<Item = (&'r Request<'r>, &'r Span)>) -> Option<Caveat> {
    let outlasts =
        |(request, call): &(&Request<'_>, &Span)| call.end_ns > request.entry.end_ns.saturating_add(OVERHANG_NS);
    let spans = calls.filter(outlasts).count();
    (spans > 0).then_some(Caveat::CallsOutlastRequest { spans })
}

/// `GET /orders/{id}`, or the span's name when it has no route.
pub(crate) fn operation_of(span: &Span) -> String {
    match (&span.facts.http_method, &span.facts.http_route) {
        (Some(method), Some(route)) => format!("{method} {route}"),
        _ => span.name.clone(),
    }
}

/// True if a span is a call or sends a message.
fn is_outgoing(span: &Span) -> bool {
    matches!(span.kind, SpanKind::Client | SpanKind::Producer)
}

/// True if a span is a call to a database.
pub(crate) fn is_database(span: &Span) -> bool {
    span.facts.db_system.is_some() || span.facts.db_query.is_some()
}

/// The text of a query, else its summary, else the name of a span that contains operation and collection.
pub(crate) fn query_text(span: &Span) -> Option<&str> {
    let facts = &span.facts;
    let is_named = facts.db_operation.is_some() && facts.db_collection.is_some();
    let name = || is_named.then_some(span.name.as_str());
    let summary = || span.attributes.get("db.query.summary").and_then(|value| value.as_str());
    facts.db_query.as_deref().or_else(summary).or_else(name).filter(|text| !text.trim().is_empty())
}

/// All requests of these traces, those without queries included.
pub(crate) fn requests<'a>(forests: &'a [Forest<'a>], thresholds: &Thresholds) -> Vec<Request<'a>> {
    let mut shapes = HashMap::new();
    forests.iter().flat_map(|forest| Cut::new(forest, thresholds, &mut shapes).requests()).collect()
}

type Shapes<'a> = HashMap<Statement<'a>, Rc<Shape>>;
/// Parent and name of internal spans that have a sibling of the same name.
type Twins<'a> = HashSet<(Option<SpanId>, &'a String)>;

/// One trace while it is cut.
struct Cut<'a, 's> {
    trace: &'a Trace,
    thresholds: &'s Thresholds,
    shapes: &'s mut Shapes<'a>,
    forest: &'a Forest<'a>,
    order: Vec<SpanId>,
    requests: HashMap<SpanId, Request<'a>>,
    /// By call: spans below it that report it again.
    nested: HashMap<SpanId, Vec<&'a Span>>,
}

impl<'a, 's> Cut<'a, 's> {
    fn new(forest: &'a Forest<'a>, thresholds: &'s Thresholds, shapes: &'s mut Shapes<'a>) -> Self {
        let trace = forest.trace();
        Self { trace, thresholds, shapes, forest, order: Vec::new(), requests: HashMap::new(), nested: HashMap::new() }
    }

    fn requests(mut self) -> Vec<Request<'a>> {
        let mut spans: Vec<&'a Span> = self.trace.spans.iter().collect();
        spans.sort_by_key(|span| (span.start_ns, Reverse(span.end_ns)));
        for span in spans {
            self.sort_in(span);
        }
        let mut requests: Vec<Request<'a>> = self.order.iter().filter_map(|id| self.requests.remove(id)).collect();
        let twins = self.twins();
        for request in &mut requests {
            self.open_wrappers(request);
            self.find_parents(request, &twins);
        }
        requests
    }

    fn sort_in(&mut self, span: &'a Span) {
        if matches!(span.kind, SpanKind::Server | SpanKind::Consumer) {
            self.request(span);
            return;
        }
        let is_call = is_database(span) || is_outgoing(span);
        let Some(entry) = self.path(span).last().copied().filter(|_| is_call) else { return };
        match self.query(span) {
            Some(query) => self.add_query(entry, query),
            None if is_housekeeping(span) || is_silent(span) => self.request(entry).housekeeping.push(span),
            None => self.add_call(entry, span),
        }
    }

    fn request(&mut self, entry: &'a Span) -> &mut Request<'a> {
        let (forest, trace) = (self.forest, self.trace);
        let order = &mut self.order;
        self.requests.entry(entry.span_id).or_insert_with(|| {
            order.push(entry.span_id);
            Request {
                forest,
                trace,
                entry,
                queries: Vec::new(),
                other_calls: Vec::new(),
                call_parents: HashMap::new(),
                housekeeping: Vec::new(),
            }
        })
    }

    fn query(&mut self, span: &'a Span) -> Option<Query<'a>> {
        let text = query_text(span).filter(|_| is_database(span) && !is_housekeeping(span))?;
        let statement = Statement::of(span, text);
        let shape = Rc::clone(self.shapes.entry(statement).or_insert_with(|| Rc::new(Shape::of(&statement))));
        if shape.is_housekeeping() {
            return None;
        }
        Some(Query { span, text, shape, scopes: vec![&span.scope], parent: span.span_id })
    }

    /// Adds a query, or a scope to the query that it doubles.
    fn add_query(&mut self, entry: &'a Span, query: Query<'a>) {
        let above: HashSet<SpanId> = self.path(query.span).iter().map(|span| span.span_id).collect();
        let gap_ns_max = self.thresholds.duplicate_start_gap_ns;
        let queries = &mut self.request(entry).queries;
        let doubled = queries.iter_mut().rev().take(DOUBLES_LOOK_BACK).find(|known| {
            known.shape.text == query.shape.text
                && !known.scopes.contains(&query.span.scope.as_str())
                && is_same_call(known.span, query.span, &above, gap_ns_max)
        });
        match doubled {
            Some(known) => known.scopes.push(&query.span.scope),
            None => queries.push(query),
        }
    }

    /// Adds a call that is no query, unless another library reported it before.
    fn add_call(&mut self, entry: &'a Span, span: &'a Span) {
        let above: HashSet<SpanId> = self.path(span).iter().map(|span| span.span_id).collect();
        let limits = Limits {
            gap_ns_max: self.thresholds.duplicate_start_gap_ns,
            overlap_share_min: self.thresholds.doubled_overlap_share,
        };
        let calls = &mut self.request(entry).other_calls;
        let is_double = |known: &&&Span| is_same_remote_call(known, span, &above, limits);
        let known = calls.iter().rev().take(DOUBLES_LOOK_BACK).find(is_double).map(|known| known.span_id);
        match known {
            Some(known) if above.contains(&known) => self.nested.entry(known).or_default().push(span),
            Some(_) => {}
            None => calls.push(span),
        }
    }

    /// Puts the calls of a wrapper in its place: those below it that request the same one after another.
    fn open_wrappers(&self, request: &mut Request<'a>) {
        let in_turn = |call: &Span| {
            let below = self.nested.get(&call.span_id)?;
            let mut tries: Vec<&'a Span> = Vec::new();
            for span in below {
                if tries.last().is_none_or(|before| span.start_ns >= before.end_ns) {
                    tries.push(span);
                }
            }
            (tries.len() > 1).then_some(tries)
        };
        let calls = std::mem::take(&mut request.other_calls);
        request.other_calls = calls.into_iter().flat_map(|call| in_turn(call).unwrap_or_else(|| vec![call])).collect();
        request.other_calls.sort_by_key(|call| call.start_ns);
    }

    /// The spans above this one in its service, nearest first, ending with the first server or consumer span. A call
    /// has the service of its parent span, unless that is a call too.
    fn path(&self, span: &Span) -> Vec<&'a Span> {
        let mut path: Vec<&'a Span> = Vec::new();
        let mut service = &span.service;
        let above = self.forest.position(span).into_iter().flat_map(|at| self.forest.upwards(at).skip(1));
        for parent in above.map(|at| self.forest.span(at)) {
            if path.is_empty() && is_outgoing(span) && !is_outgoing(parent) {
                service = &parent.service;
            }
            if parent.service != *service {
                break;
            }
            path.push(parent);
            if matches!(parent.kind, SpanKind::Server | SpanKind::Consumer) {
                break;
            }
        }
        path
    }

    fn find_parents(&self, request: &mut Request<'a>, twins: &Twins<'a>) {
        let paths: Vec<Vec<&Span>> = request.queries.iter().map(|query| self.path(query.span)).collect();
        let mut queries_below: HashMap<SpanId, usize> = HashMap::new();
        for span in paths.iter().flatten() {
            *queries_below.entry(span.span_id).or_default() += 1;
        }
        request.other_calls.retain(|call| !queries_below.contains_key(&call.span_id));
        for (query, path) in request.queries.iter_mut().zip(&paths) {
            let is_wrapper = |span: &Span| {
                span.kind == SpanKind::Internal
                    && (queries_below.get(&span.span_id) == Some(&1) || twins.contains(&(span.parent_id, &span.name)))
            };
            let is_parent = |span: &&&Span| !(is_database(span) || is_housekeeping(span) || is_wrapper(span));
            query.parent = path.iter().find(is_parent).unwrap_or(&request.entry).span_id;
        }
        self.find_call_parents(request, twins);
    }

    fn find_call_parents(&self, request: &mut Request<'a>, twins: &Twins<'a>) {
        let paths: Vec<Vec<&Span>> = request.other_calls.iter().map(|call| self.path(call)).collect();
        let mut calls_below: HashMap<SpanId, usize> = HashMap::new();
        for span in paths.iter().flatten() {
            *calls_below.entry(span.span_id).or_default() += 1;
        }
        let is_wrapper = |span: &Span| match span.kind {
            SpanKind::Client | SpanKind::Producer => true,
            SpanKind::Internal => {
                calls_below.get(&span.span_id) == Some(&1) || twins.contains(&(span.parent_id, &span.name))
            }
            SpanKind::Server | SpanKind::Consumer => false,
        };
        // A call that carries a call to a database is part of it.
        let carriers: HashSet<SpanId> =
            request.other_calls.iter().filter(|call| is_database(call)).map(|call| call.span_id).collect();
        let is_carrying = |path: &[&Span]| path.iter().any(|above| carriers.contains(&above.span_id));
        for (call, path) in request.other_calls.iter().zip(&paths) {
            let parent = path.iter().find(|span| !(is_housekeeping(span) || is_wrapper(span)));
            request.call_parents.insert(call.span_id, parent.unwrap_or(&request.entry).span_id);
        }
        let mut paths = paths.iter();
        request.other_calls.retain(|_| !paths.next().is_some_and(|path| is_carrying(path)));
    }

    fn twins(&self) -> Twins<'a> {
        let mut seen = HashSet::new();
        let inner = self.trace.spans.iter().filter(|span| span.kind == SpanKind::Internal);
        inner.map(|span| (span.parent_id, &span.name)).filter(|key| !seen.insert(*key)).collect()
    }
}

/// True if two spans of two libraries report one call: siblings that start together and overlap, or one inside the
/// other.
fn is_same_call(known: &Span, span: &Span, above: &HashSet<SpanId>, gap_ns_max: i64) -> bool {
    let overlaps = span.start_ns < known.end_ns || span.start_ns == known.start_ns;
    let is_sibling =
        known.parent_id == span.parent_id && span.start_ns.abs_diff(known.start_ns) <= gap_ns_max.unsigned_abs();
    overlaps && (is_sibling || above.contains(&known.span_id))
}

/// True if a span goes to a database and says neither its statement nor which operation it is.
fn is_silent(span: &Span) -> bool {
    is_database(span) && (span.facts.db_operation.is_none() || query_text(span).is_some())
}

/// Spans of pools, sockets and frameworks that stand between a program and its queries.
pub(crate) fn is_housekeeping(span: &Span) -> bool {
    const STARTS: [&str; 2] = ["middleware - ", "router - "];
    let name = span.name.to_ascii_lowercase();
    let is_between = name.ends_with("begin") || STARTS.iter().any(|start| name.starts_with(start));
    (is_between || is_step_of_call(&name)) && span.facts.db_query.is_none()
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{Beat, SpanBuilder, client, database, internal, query, run_of, server};

    use super::*;

    const BEAT: Beat = Beat { first_ms: 1.0, step_ms: 5.0, length_ms: 3.0 };

    fn cut(root: SpanBuilder, check: impl FnOnce(&[Request<'_>])) {
        let traces = [root.at(0.0, 100.0).trace(1)];
        check(&requests(&Forest::of_all(&traces), &Thresholds::default()));
    }

    #[test]
    fn a_call_whose_span_has_a_service_of_its_own_is_its_callers() {
        let labelled = || query("SELECT a FROM t").service("shop-mysql");
        cut(server("shop", "GET /").child(internal("load").child(labelled())).child(labelled()), |requests| {
            assert_eq!((requests.len(), requests[0].queries.len()), (1, 2));
            assert_eq!(requests[0].entry.service, "shop");
        });
        let of_callee = query("SELECT a FROM t").service("stock");
        cut(server("shop", "GET /").child(client("GET").child(of_callee)), |requests| {
            assert_eq!(
                requests.iter().map(|request| request.queries.len()).sum::<usize>(),
                0,
                "stock sends no server span"
            );
        });
    }

    #[test]
    fn a_query_without_text_is_known_by_its_operation_and_its_collection() {
        let named = |collection: Option<&str>| {
            database("mongoose.item.findOne").facts(|facts| {
                facts.db_operation = Some("findOne".into());
                facts.db_collection = collection.map(Into::into);
            })
        };
        cut(server("shop", "GET /").child(named(Some("items"))), |requests| {
            let texts: Vec<&str> = requests[0].queries.iter().map(|query| query.text).collect();
            assert_eq!((texts, requests[0].other_calls.len()), (vec!["mongoose.item.findOne"], 0));
        });
        cut(server("shop", "GET /").child(named(None)), |requests| {
            assert_eq!((requests[0].queries.len(), requests[0].other_calls.len()), (0, 1));
        });
    }

    fn doubled(outer: SpanBuilder, inner: SpanBuilder, count: usize) -> Vec<SpanBuilder> {
        let inner_beat = Beat { first_ms: 1.1, length_ms: 2.8, ..BEAT };
        let mut spans = run_of(count, BEAT, |_| outer.clone());
        spans.extend(run_of(count, inner_beat, |_| inner.clone()));
        spans
    }

    #[test]
    fn stacked_libraries_count_once() {
        let orm = query("SELECT a FROM t WHERE b = %(b)s").scope("sqlalchemy");
        let driver = query("SELECT a FROM t WHERE b = %s").scope("psycopg2");
        cut(server("shop", "GET /").children(doubled(orm.clone(), driver.clone(), 7)), |requests| {
            assert_eq!(requests[0].queries.len(), 7);
            assert!(requests[0].queries.iter().all(|query| query.scopes == ["sqlalchemy", "psycopg2"]));
        });
        let nested =
            run_of(7, BEAT, |i| orm.clone().child(driver.clone().at(BEAT.first_ms + 5.0 * i as f64 + 1.5, 1.0)));
        cut(server("shop", "GET /").children(nested), |requests| assert_eq!(requests[0].queries.len(), 7));
    }

    #[test]
    fn parallel_queries_of_one_library_stay_apart() {
        let same_time = Beat { step_ms: 0.1, ..BEAT };
        cut(
            server("shop", "GET /").children(run_of(7, same_time, |_| query("SELECT a FROM t WHERE b = ?"))),
            |requests| {
                assert_eq!(requests[0].queries.len(), 7);
            },
        );
    }

    #[test]
    fn connections_and_transactions_are_set_aside() {
        let root = server("shop", "GET /")
            .child(internal("middleware - query"))
            .child(database("pg-pool.connect").at(1.0, 1.0))
            .child(query("BEGIN").at(2.0, 1.0))
            .child(query("SELECT a FROM t").at(3.0, 1.0))
            .child(client("tcp.connect").at(4.0, 1.0))
            .child(client("GET").at(5.0, 1.0));
        cut(root, |requests| {
            let request = &requests[0];
            assert_eq!((request.queries.len(), request.housekeeping.len(), request.other_calls.len()), (1, 3, 1));
        });
    }

    #[test]
    fn queries_that_follow_one_another_are_two() {
        let short = |start_ms: f64, scope: &str| query("SELECT a FROM t WHERE b = ?").scope(scope).at(start_ms, 0.2);
        let root = server("shop", "GET /").child(short(1.0, "sqlalchemy")).child(short(1.3, "psycopg2"));
        cut(root, |requests| assert_eq!(requests[0].queries.len(), 2));
        let long = |start_ms: f64, scope: &str| query("SELECT a FROM t WHERE b = ?").scope(scope).at(start_ms, 9.0);
        let root = server("shop", "GET /").child(long(1.0, "sqlalchemy")).child(long(3.0, "psycopg2"));
        cut(root, |requests| assert_eq!(requests[0].queries.len(), 2, "two pools, side by side"));
    }

    #[test]
    fn a_call_that_queries_lie_below_is_no_other_call() {
        let engine = client("prisma:engine").at(1.0, 9.0).child(query("SELECT a FROM t WHERE b = ?").at(2.0, 1.0));
        cut(server("shop", "GET /").child(engine).child(client("GET").at(20.0, 5.0)), |requests| {
            let names: Vec<&str> = requests[0].other_calls.iter().map(|call| call.name.as_str()).collect();
            assert_eq!(names, ["GET"]);
        });
    }

    /// The names of the other calls of a request.
    fn calls(children: Vec<SpanBuilder>) -> Vec<String> {
        let mut names = Vec::new();
        cut(server("shop", "GET /").children(children), |requests| {
            names = requests[0].other_calls.iter().map(|call| call.scope.clone()).collect();
        });
        names
    }

    #[test]
    fn stacked_clients_count_once() {
        let get = |scope: &str| client("GET").url("http://stock/parts/7").scope(scope);
        assert_eq!(calls(vec![get("requests").at(1.0, 9.0), get("urllib3").at(1.3, 8.5)]), ["requests"]);
        assert_eq!(calls(vec![get("requests").at(1.0, 9.0).child(get("urllib3").at(3.0, 6.0))]), ["requests"]);
        let again = vec![get("requests").at(1.0, 9.0), get("requests").at(1.3, 8.5)];
        assert_eq!(calls(again).len(), 2, "one library asks twice at once");
        let rpc = |scope: &str, method: &str| client("call").remote("shop.v1.Cart", method).scope(scope);
        assert_eq!(calls(vec![rpc("grpc", "Add").at(1.0, 9.0).child(rpc("otelgrpc", "Add").at(1.2, 8.0))]), ["grpc"]);
        assert_eq!(calls(vec![rpc("grpc", "Add").at(1.0, 9.0), rpc("otelgrpc", "Pay").at(1.2, 8.0)]).len(), 2);
    }

    #[test]
    fn a_library_that_tries_again_counts_as_its_tries() {
        let get = |scope: &str| client("GET").url("http://stock/parts/7").scope(scope);
        let outer = get("polly").at(1.0, 30.0);
        let tries = [get("http").at(2.0, 5.0).failed(), get("http").at(10.0, 5.0).failed(), get("http").at(20.0, 5.0)];
        assert_eq!(calls(vec![outer.clone().children(tries)]), ["http", "http", "http"]);
        let thrice = outer.child(get("http").at(2.0, 20.0).child(get("socket").at(3.0, 18.0)));
        assert_eq!(calls(vec![thrice]), ["polly"], "three libraries");
    }

    #[test]
    fn calls_have_the_parents_that_their_author_would_name() {
        let get = |i: usize| client("GET").url(&format!("http://stock/parts/{i}")).at(5.0 * i as f64, 3.0);
        let wrapped = (1..6).map(|i| internal("StockClient.find").at(5.0 * i as f64, 3.0).child(get(i)));
        let phase = internal("load").at(30.0, 60.0).children([get(7), get(8)]);
        cut(server("shop", "GET /").children(wrapped).child(phase), |requests| {
            let request = &requests[0];
            let parents = request.other_calls.iter().map(|call| request.call_parents[&call.span_id]);
            let at_entry = parents.filter(|parent| *parent == request.entry.span_id).count();
            assert_eq!((request.other_calls.len(), at_entry), (7, 5));
        });
    }

    /// How many queries have the entry as their parent, and how many any other span.
    fn parents(children: Vec<SpanBuilder>) -> (usize, usize) {
        let mut counts = (0, 0);
        cut(server("shop", "GET /").children(children), |requests| {
            let request = &requests[0];
            let below_entry = request.queries.iter().filter(|query| query.parent == request.entry.span_id).count();
            counts = (below_entry, request.queries.len() - below_entry);
        });
        counts
    }

    #[test]
    fn wrappers_are_no_parents_but_phases_are() {
        let holding = |name: &str, queries: usize| {
            internal(name).children(run_of(queries, BEAT, |_| query("SELECT a FROM t WHERE b = ?")))
        };
        assert_eq!(parents(vec![holding("find customer", 1), holding("find address", 1)]), (2, 0));
        assert_eq!(parents(vec![holding("load row", 2), holding("load row", 2)]), (4, 0));
        assert_eq!(parents(vec![holding("load", 2), holding("check", 3)]), (0, 5));
        assert_eq!(parents(vec![holding("load", 2), query("SELECT a FROM t")]), (1, 2));
    }

    #[test]
    fn each_service_of_a_trace_has_its_own_request() {
        let inner = server("stock", "GET /stock").at(10.0, 20.0).child(query("SELECT a FROM t").at(11.0, 2.0));
        let root = server("shop", "GET /orders").child(client("GET").at(9.0, 22.0).child(inner));
        cut(root, |requests| {
            let seen: Vec<_> = requests.iter().map(|r| (r.operation(), r.queries.len(), r.other_calls.len())).collect();
            assert_eq!(seen, [("GET /orders".to_owned(), 0, 1), ("GET /stock".to_owned(), 1, 0)]);
        });
    }

    #[test]
    fn broken_traces_are_survived() {
        let mut trace = server("shop", "GET /").child(query("SELECT a FROM t")).trace(1);
        trace.spans[0].parent_id = Some(trace.spans[1].span_id);
        trace.spans[0].kind = SpanKind::Internal;
        let lonely = query("SELECT a FROM t").service("shop").trace(2);
        let traces = [trace, lonely];
        let forests = Forest::of_all(&traces);
        let requests = requests(&forests, &Thresholds::default());
        assert!(requests.iter().all(|request| request.trace.id == traces[0].id));
    }
}
