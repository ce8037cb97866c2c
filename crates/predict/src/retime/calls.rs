//! The calls of a request: what they call, which are of one kind, and which repeat a refused one.

use std::collections::{BTreeMap, HashMap, HashSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::run::{sidecar_name, sidecar_of};
use narrows_model::trace::{Span, SpanKind, is_step_of_call};

use super::timed_tree::TimedTree;

/// How types of errors and statuses begin by which services refuse a caller that sends too much.
const REFUSALS: [&str; 5] =
    ["429", "RESOURCE_EXHAUSTED", "Throttl", "ProvisionedThroughputExceeded", "TooManyRequests"];
/// How long after the last call a span that comes with it may start.
const COMPANY_NS_MAX: i64 = 1_000_000;
/// Name of the time between a caller and its callee.
const NETWORK: &str = "";

/// Whether an attempt was refused because the caller sends too much.
pub(crate) fn is_refused(span: &Span) -> bool {
    let facts = &span.facts;
    let texts = [&facts.db_status, &facts.rpc_status, &facts.error_type];
    let says_so = |text: &String| {
        let name = text.rsplit('.').next().unwrap_or(text);
        REFUSALS.iter().any(|word| name.starts_with(word))
    };
    let is_put_off = facts.http_status == Some(503) && facts.retry_after_ns.is_some();
    facts.http_status == Some(429) || is_put_off || texts.into_iter().flatten().any(says_so)
}

fn went_wrong(span: &Span) -> bool {
    is_refused(span) || span.has_failed()
}

/// Whether a span is a call to a database.
pub(crate) fn is_database(span: &Span) -> bool {
    span.facts.db_system.is_some() || span.facts.db_query.is_some()
}

fn is_call(span: &Span) -> bool {
    matches!(span.kind, SpanKind::Client | SpanKind::Producer) || is_database(span)
}

/// Whether a span is a call, and not one step of another that its library reports beside it.
fn is_whole_call(span: &Span) -> bool {
    is_call(span) && (span.facts.db_query.is_some() || !is_step_of_call(&span.name))
}

/// Whether a span is a request of the operation that a text names: `GET /orders`, or `shop GET /orders`.
pub(crate) fn is_entry_of(span: &Span, operation: &str) -> bool {
    let name = match (&span.facts.http_method, &span.facts.http_route) {
        (Some(method), Some(route)) => format!("{method} {route}"),
        _ => span.name.clone(),
    };
    let is_named = |name: &str| operation == name || operation == format!("{} {name}", span.service);
    matches!(span.kind, SpanKind::Server | SpanKind::Consumer) && (is_named(&name) || is_named(&span.name))
}

/// The names of what is called in a trial.
#[derive(Debug)]
pub(crate) struct Names {
    by_port: HashMap<u16, String>,
    /// The only service of the trial that sends no spans. A database that spans name by its system alone is this one.
    silent: Option<String>,
    /// All services of the trial, sidecars included.
    services: HashSet<String>,
}

impl Names {
    pub(crate) fn new(trial: &TrialEvidence) -> Self {
        let ports = trial.services.iter().flat_map(|one| one.stand_in_ports.iter().copied().chain([one.port]));
        let named = |port| Some((port, trial.reached_at(Some(port))?.service.clone()));
        let services = trial.service_names().into_iter().map(str::to_owned).collect();
        Self { by_port: ports.filter_map(named).collect(), silent: silent(trial), services }
    }

    /// Destination of a call: a service of the trial, else what the span calls it.
    pub(crate) fn callee<'a>(&'a self, tree: &TimedTree<'a>, at: usize) -> &'a str {
        let span = tree.span(at);
        let facts = &span.facts;
        let by_port = facts.server_port.and_then(|port| self.by_port.get(&port)).map(String::as_str);
        let by_child =
            || tree.children(at).iter().map(|child| tree.span(*child)).find(|child| child.service != span.service);
        let silent = self.silent.as_deref().filter(|_| is_database(span) && facts.server_port.is_none());
        let said = || [&facts.db_system, &facts.peer_service, &facts.rpc_service, &facts.server_address];
        by_port
            .or_else(|| by_child().map(|child| child.service.as_str()))
            .or(silent)
            .or_else(|| said().into_iter().flatten().find(|name| !name.is_empty()).map(String::as_str))
            .unwrap_or(&span.name)
    }

    /// Where a span's own time passes: its service; for a call whose callee sends no spans, there; else the network.
    pub(crate) fn place<'a>(&'a self, tree: &TimedTree<'a>, at: usize) -> &'a str {
        let span = tree.span(at);
        if !is_call(span) {
            return &span.service;
        }
        let has_spans = tree.children(at).iter().any(|child| tree.span(*child).service != span.service);
        if has_spans { NETWORK } else { self.callee(tree, at) }
    }

    /// Whether a span's own time passes between its caller and its callee alone.
    pub(crate) fn is_way(&self, tree: &TimedTree<'_>, at: usize) -> bool {
        self.place(tree, at) == NETWORK
    }

    /// Sidecars that a call between services passes without a span of theirs: its caller's and its callee's.
    pub(crate) fn hidden_sidecars<'a>(&'a self, tree: &TimedTree<'a>, at: usize) -> Vec<&'a str> {
        let span = tree.span(at);
        let is_shown = || tree.children(at).iter().any(|child| sidecar_of(&tree.span(*child).service).is_some());
        if !is_whole_call(span) || sidecar_of(&span.service).is_some() || is_shown() {
            return Vec::new();
        }
        let callee = self.callee(tree, at);
        let ends = [span.service.as_str(), callee].into_iter().filter(|_| self.services.contains(callee));
        ends.filter_map(|service| self.services.get(&sidecar_name(service))).map(String::as_str).collect()
    }

    /// The sidecar of a trace's first service if it sends no spans: requests pass it before the trace begins.
    pub(crate) fn hidden_entry<'a>(&'a self, tree: &TimedTree<'_>) -> Option<&'a str> {
        let first = &tree.span(tree.root).service;
        self.services.get(&sidecar_name(first)).map(String::as_str)
    }
}

/// The only service, sidecars left out, that sends no spans; `None` if there are several, or no traces.
fn silent(trial: &TrialEvidence) -> Option<String> {
    let speaking: HashSet<&str> =
        trial.traces.iter().flat_map(|trace| &trace.spans).map(|span| span.service.as_str()).collect();
    let names = trial.service_names().into_iter();
    let mut silent = names.filter(|name| sidecar_of(name).is_none() && !speaking.contains(name));
    match (silent.next(), silent.next()) {
        (Some(only), None) if !speaking.is_empty() => Some(only.to_owned()),
        _ => None,
    }
}

/// Calls of one kind below one span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group<'a> {
    /// Callee.
    pub(crate) callee: &'a str,
    /// Key that the calls have in common.
    pub(crate) kind: String,
    /// In order of start; each with its attempts in order, at least one.
    pub(crate) calls: Vec<Vec<usize>>,
}

impl Group<'_> {
    /// All attempts of all calls.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = usize> {
        self.calls.iter().flatten().copied()
    }

    /// Attempts in progress at the same time, at most.
    pub(crate) fn at_once(&self, tree: &TimedTree<'_>) -> usize {
        let is_running = |one: usize, at_ns: i64| (tree.times(one).0..tree.times(one).1).contains(&at_ns);
        let running = |at: usize| self.attempts().filter(|one| is_running(*one, tree.times(at).0)).count();
        self.attempts().map(running).max().unwrap_or(0)
    }

    /// Time from the first start to the last end.
    pub(crate) fn span_ns(&self, tree: &TimedTree<'_>) -> f64 {
        let start = self.attempts().map(|at| tree.times(at).0).min().unwrap_or(0);
        let end = self.attempts().map(|at| tree.times(at).1).max().unwrap_or(0);
        (end - start) as f64
    }

    /// Spans beside these calls that come with each further one: of a name that occurs as often, such as taking a
    /// connection, reading rows, or converting what was read. Statements and calls with spans below them are others' own.
    pub(crate) fn company(&self, tree: &TimedTree<'_>) -> Vec<usize> {
        let further = self.calls.len().saturating_sub(1);
        let Some(parent) = tree.parent(self.calls[0][0]).filter(|_| further > 0) else { return Vec::new() };
        let own: HashSet<usize> = self.attempts().collect();
        let (from, to) = (tree.times(self.calls[0][0]).0, self.attempts().map(|at| tree.times(at).1).max());
        let is_beside = |at: &&usize| {
            let (start, _) = tree.times(**at);
            let is_leaf = tree.children(**at).is_empty() && tree.span(**at).facts.db_query.is_none();
            is_leaf && !own.contains(*at) && start >= from
        };
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for at in tree.children(parent).iter().filter(is_beside) {
            by_name.entry(tree.span(*at).name.as_str()).or_default().push(*at);
        }
        let is_within = |at: &usize| to.is_some_and(|to| tree.times(*at).0 <= to + COMPANY_NS_MAX);
        let last = |all: Vec<usize>| {
            let near: Vec<usize> = all.into_iter().filter(is_within).collect();
            let skipped = near.len().saturating_sub(further);
            near.into_iter().skip(skipped).filter(|_| skipped <= 1).collect::<Vec<_>>()
        };
        by_name.into_values().filter(|all| all.len() >= further).flat_map(last).collect()
    }

    /// Time from the first start to the last end in which none of them is in progress.
    pub(crate) fn gaps_ns(&self, tree: &TimedTree<'_>) -> f64 {
        let mut times: Vec<(i64, i64)> = self.attempts().map(|at| tree.times(at)).collect();
        times.sort_unstable();
        let (mut until, mut gaps) = (times.first().map_or(0, |first| first.0), 0);
        for (start, end) in times {
            gaps += (start - until).max(0);
            until = until.max(end);
        }
        gaps as f64
    }

    /// How long each call takes with its attempts and the waits between them, given how long each span takes.
    pub(crate) fn lengths_ns(&self, tree: &TimedTree<'_>, lengths: &[f64]) -> Vec<f64> {
        let length = |attempts: &Vec<usize>| {
            let waits = attempts.windows(2).map(|pair| (tree.times(pair[1]).0 - tree.times(pair[0]).1).max(0) as f64);
            attempts.iter().map(|at| lengths[*at]).sum::<f64>() + waits.sum::<f64>()
        };
        self.calls.iter().map(length).collect()
    }
}

/// The calls of a request that has this entry, those of one kind below one span together.
pub(crate) fn groups<'a>(tree: &TimedTree<'a>, entry: usize, names: &'a Names) -> Vec<Group<'a>> {
    let mut found: BTreeMap<(usize, String), (&str, Vec<usize>)> = BTreeMap::new();
    for at in tree.order.iter().copied().filter(|at| is_whole_call(tree.span(*at)) && is_made_by(tree, *at, entry)) {
        let unit = unit(tree, at);
        let key = (tree.parent(unit).unwrap_or(entry), kind_of(tree.span(at)));
        found.entry(key).or_insert_with(|| (names.callee(tree, at), Vec::new())).1.push(unit);
    }
    let group = |((_, kind), (callee, mut units)): ((usize, String), (&'a str, Vec<usize>))| {
        units.sort_by_key(|at| (tree.times(*at), *at));
        Group { callee, kind, calls: with_attempts(tree, &units) }
    };
    found.into_iter().map(group).collect()
}

/// Whether this is a call that the entry's own code made, and no call of another library stands above it.
fn is_made_by(tree: &TimedTree<'_>, at: usize, entry: usize) -> bool {
    let mut above = tree.parent(at);
    while let Some(parent) = above.filter(|parent| *parent != entry) {
        if tree.span(parent).kind != SpanKind::Internal || is_database(tree.span(parent)) {
            return false;
        }
        above = tree.parent(parent);
    }
    above == Some(entry)
}

/// The outermost internal span that holds nothing but this call, else the call itself: a repository's method, say.
fn unit(tree: &TimedTree<'_>, call: usize) -> usize {
    let is_wrapper = |at: &usize| tree.span(*at).kind == SpanKind::Internal && tree.children(*at).len() == 1;
    let above = std::iter::successors(tree.parent(call), |at| tree.parent(*at)).take_while(is_wrapper);
    above.last().unwrap_or(call)
}

/// Key of calls of one kind: the statement without values, or method, address and path without ids.
fn kind_of(span: &Span) -> String {
    let facts = &span.facts;
    let text = |fact: &Option<String>| fact.clone().unwrap_or_default();
    match &facts.db_query {
        Some(query) => format!("{} {}", text(&facts.db_system), without_values(query)),
        None => {
            let url = facts.url_template.as_deref().or(facts.url.as_deref()).unwrap_or("");
            let path = without_values(url.split(['?', '#']).next().unwrap_or(""));
            format!("{} {} {} {path}", span.name, text(&facts.http_method), text(&facts.db_collection))
        }
    }
}

/// A text with `?` in place of quoted parts and of words that begin with a digit.
fn without_values(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quoted = false;
    let mut in_number = false;
    for c in text.chars() {
        let begins_word = !out.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        match c {
            '\'' => {
                out.push_str(if quoted { "" } else { "?" });
                quoted = !quoted;
            }
            _ if quoted => {}
            c if c.is_ascii_digit() && (begins_word || in_number) => {
                if !in_number {
                    out.push('?');
                }
                in_number = true;
                continue;
            }
            c => out.push(c),
        }
        in_number = false;
    }
    out
}

/// Calls with the attempts that repeat a failed one: the same request to the same partition, made after it ended.
fn with_attempts(tree: &TimedTree<'_>, units: &[usize]) -> Vec<Vec<usize>> {
    let requested = |at: usize| {
        let facts = &tree.span(at).facts;
        (facts.db_partition.as_ref(), facts.url.as_ref(), facts.db_query.as_ref())
    };
    let mut calls: Vec<Vec<usize>> = Vec::new();
    for unit in units {
        let is_open = |attempts: &&mut Vec<usize>| {
            let last = attempts[attempts.len() - 1];
            went_wrong(tree.span(last))
                && tree.times(last).1 <= tree.times(*unit).0
                && requested(last) == requested(*unit)
        };
        match calls.iter_mut().find(is_open) {
            Some(call) => call.push(*unit),
            None => calls.push(vec![*unit]),
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{database, document_query, internal, query, server};
    use narrows_testkit::trial::TrialBuilder;

    use super::*;

    #[test]
    fn values_do_not_tell_statements_apart() {
        assert_eq!(
            without_values("SELECT a1 FROM t WHERE id = 42 AND b='x y'"),
            "SELECT a1 FROM t WHERE id = ? AND b=?"
        );
        assert_eq!(without_values("/orders/17/lines"), "/orders/?/lines");
    }

    #[test]
    fn calls_of_one_kind_are_found_with_their_attempts() {
        let call = |partition: &str, start_ms| document_query("SELECT * FROM c", partition).at(start_ms, 8.0);
        let trace = server("shop", "GET /")
            .at(0.0, 100.0)
            .children([
                query("SELECT 1 FROM list").at(1.0, 2.0),
                database("sql.conn.reset_session").at(3.0, 1.0),
                database("sql.conn.reset_session").at(5.0, 1.0),
                call("0", 10.0),
                call("1", 20.0).throttled(Some(5.0)),
                call("1", 35.0),
                internal("find").at(50.0, 10.0).child(query("SELECT * FROM t WHERE id = 1").at(51.0, 8.0)),
                internal("find").at(60.0, 10.0).child(query("SELECT * FROM t WHERE id = 2").at(61.0, 8.0)),
            ])
            .trace(1);
        let tree = TimedTree::new(&trace).expect("a root");
        let trial = TrialBuilder::new("a").build();
        let names = Names::new(&trial);
        let mut sizes: Vec<Vec<usize>> = groups(&tree, tree.root, &names)
            .into_iter()
            .map(|group| group.calls.iter().map(Vec::len).collect())
            .collect();
        sizes.sort();
        assert_eq!(sizes, [vec![1], vec![1, 1], vec![1, 2]]);
    }
}
