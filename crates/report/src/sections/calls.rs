//! Calls between processes under the heaviest load, as their sockets show them: who waits for whom.

use narrows_model::call_graph::{Bounds, CallEdge, CallGraph, CallLevel, NodeKind};
use narrows_model::comparison::Outcome;
use narrows_model::limit::LevelSummary;
use narrows_model::series::names;
use narrows_model::units;

use super::Context;
use super::threads::heaviest;
use crate::html::Palette;
use crate::html::call_graph::{CallGraphDrawing, DrawnEdge, DrawnNode, svg};
use crate::section::{Block, Cell, Column, Figure, Group, Medium, Phrase, Row, Section, Table};

/// Variants that are shown.
const VARIANTS_MAX: usize = 12;
/// Calls of a variant, those that most requests wait for.
const EDGES_MAX: usize = 40;
/// The same in the terminal, of all variants.
const TERMINAL_MAX: usize = 8;
/// Fewer requests or connections than this are written as 0.
const SHOWN_MIN: f64 = 0.005;
/// Calls per request of the load below which their rate is shown instead.
const PER_REQUEST_MIN: f64 = 0.01;
/// Bounds that lie no further apart, as a share of the upper one, are written as their middle.
const NARROW: f64 = 0.1;

const NOTE: &str = "From the kernel's view of the sockets, without spans: means under the heaviest load. The time per call is \
                    that for which the caller waits (requests that wait ÷ requests per second); it is a range where samples \
                    leave open whether a request is outstanding. Of several requests at once on a connection, as in HTTP/2, \
                    one is counted.";

/// Graph and table of each variant; without blocks if no service calls another. The terminal leaves them out where spans
/// say more.
pub(super) fn section(context: &Context<'_>) -> Section {
    let outcome = context.outcome;
    let has_spans = outcome.evidence.trials.iter().any(|trial| trial.spans_total > 0);
    if context.medium == Medium::Terminal && has_spans {
        return Section::default();
    }
    let shown = variants(outcome);
    if shown.is_empty() {
        return Section::default();
    }
    let mut blocks = Vec::new();
    if context.medium == Medium::Page {
        for variant in &shown {
            blocks.extend((shown.len() > 1).then(|| Block::Heading(Phrase::from(variant.title()))));
            blocks.push(Block::Drawing(svg(&variant.drawing(&context.palette))));
        }
    }
    blocks.push(Block::Table(table(&shown)));
    blocks.push(Block::Only(Medium::Page, vec![Block::Note(Phrase::from(NOTE))]));
    Section::new("calls", "Who waits for whom", blocks)
}

/// Graph and table of a trial under one level of its load; `None` if no service calls another there.
pub(crate) fn under(outcome: &Outcome, trial: usize, level: usize) -> Option<Section> {
    let (limit, graph) = (outcome.limits.get(trial)?, outcome.call_graphs.get(trial)?);
    let variant = outcome.evidence.trials.get(trial)?.trial.variant.as_str();
    let calls = VariantCalls::of(variant, graph, level, limit.levels.get(level)?)?;
    let drawing = svg(&calls.drawing(&Palette::new(&outcome.evidence)));
    let blocks = vec![Block::Drawing(drawing), Block::Table(table(&[calls])), Block::Note(Phrase::from(NOTE))];
    Some(Section::untitled(blocks))
}

/// The calls of a variant in its first trial that has any.
#[derive(Debug)]
struct VariantCalls<'a> {
    variant: &'a str,
    graph: &'a CallGraph,
    at: usize,
    level: &'a LevelSummary,
    /// Most requests first.
    edges: Vec<&'a CallEdge>,
}

fn variants(outcome: &Outcome) -> Vec<VariantCalls<'_>> {
    let mut shown: Vec<VariantCalls<'_>> = Vec::new();
    for ((trial, graph), limit) in outcome.evidence.trials.iter().zip(&outcome.call_graphs).zip(&outcome.limits) {
        let variant = trial.trial.variant.as_str();
        if shown.len() == VARIANTS_MAX || shown.iter().any(|one| one.variant == variant) {
            continue;
        }
        shown.extend(heaviest(limit, |_| true).and_then(|at| VariantCalls::of(variant, graph, at, &limit.levels[at])));
    }
    shown
}

impl<'a> VariantCalls<'a> {
    /// `None` if no service calls another.
    fn of(variant: &'a str, graph: &'a CallGraph, at: usize, level: &'a LevelSummary) -> Option<Self> {
        let is_used = |edge: &&CallEdge| {
            edge.levels.get(at).is_some_and(|level| {
                let calls = &level.all;
                calls.requests().high.max(calls.rate).max(calls.connections) >= SHOWN_MIN && edge.caller != edge.callee
            })
        };
        let mut edges: Vec<&CallEdge> = graph.edges.iter().filter(is_used).collect();
        let waiting = |edge: &CallEdge| edge.levels[at].all.requests().middle();
        edges.sort_by(|a, b| waiting(b).total_cmp(&waiting(a)));
        edges.truncate(EDGES_MAX);
        let is_client = |edge: &&CallEdge| graph.node(&edge.caller).is_none_or(|node| node.kind == NodeKind::Client);
        let is_alone = edges.iter().all(is_client);
        (!is_alone).then_some(Self { variant, graph, at, level, edges })
    }

    fn load(&self) -> &'a str {
        self.level.label.trim_matches(['“', '”'])
    }

    fn title(&self) -> String {
        format!("{}, {}", self.variant, self.load())
    }

    fn calls(&self, edge: &'a CallEdge) -> EdgeCalls<'a> {
        let rate = edge.levels[self.at].all.rate;
        let is_load = self.graph.node(&edge.caller).is_some_and(|node| node.kind == NodeKind::Client);
        let per_request = (self.level.rate > 0.0 && !is_load).then(|| rate / self.level.rate);
        let per_request = per_request.filter(|calls| *calls >= PER_REQUEST_MIN);
        EdgeCalls { level: &edge.levels[self.at], is_load, per_request }
    }

    fn drawing(&self, palette: &Palette) -> CallGraphDrawing {
        let ends = self.edges.iter().flat_map(|edge| [edge.caller.as_str(), edge.callee.as_str()]);
        let mut names: Vec<&str> = ends.collect();
        names.sort_unstable();
        names.dedup();
        let requests = |name: &&str| self.graph.node(name).and_then(|node| node.requests.get(self.at)).copied();
        let most = names.iter().filter_map(requests).fold(SHOWN_MIN, f64::max);
        let node = |name: &&str| {
            let requests = requests(name);
            let kind = self.graph.node(name).map_or(NodeKind::Outside, |node| node.kind);
            let figure = match (kind, requests) {
                (NodeKind::Client, _) => self.load().to_owned(),
                (_, Some(requests)) => format!("{} here", counted(shown(requests))),
                (_, None) => String::new(),
            };
            DrawnNode {
                name: end(name).to_owned(),
                figure,
                colour: palette.class(name),
                is_outside: matches!(kind, NodeKind::Client | NodeKind::Outside),
                stands_out: requests.is_some_and(|requests| requests >= most),
            }
        };
        let place = |name: &str| names.binary_search(&name).unwrap_or_default();
        let widest = self.edges.iter().map(|edge| self.calls(edge).waiting()).fold(0.0, f64::max);
        let edge = |edge: &&'a CallEdge| {
            let calls = self.calls(edge);
            DrawnEdge {
                caller: place(&edge.caller),
                callee: place(&edge.callee),
                label: calls.label(),
                detail: format!("{}: {}", ends_of(edge), calls.detail()),
                weight: if widest > 0.0 { calls.waiting() / widest } else { 0.0 },
            }
        };
        CallGraphDrawing {
            title: format!("Calls between processes, {}", self.title()),
            nodes: names.iter().map(node).collect(),
            edges: self.edges.iter().map(edge).collect(),
        }
    }
}

/// Calls of an edge under the heaviest load.
#[derive(Debug)]
struct EdgeCalls<'a> {
    level: &'a CallLevel,
    /// Whether they are the requests of the load.
    is_load: bool,
    /// Calls per request of the load; `None` if they have nothing to do with it.
    per_request: Option<f64>,
}

impl EdgeCalls<'_> {
    /// Requests of the load that wait for them.
    fn waiting(&self) -> f64 {
        if self.level.is_background { 0.0 } else { self.level.all.requests().middle() }
    }

    fn wait(&self) -> Option<String> {
        self.level.all.wait_ns().map(|ns| range(ns, units::duration))
    }

    /// `98 ms × 2/request`.
    fn label(&self) -> String {
        let calls = &self.level.all;
        let often = match self.per_request {
            Some(per_request) => format!("{}/request", units::number(per_request)),
            None => units::rate(calls.rate),
        };
        match self.wait() {
            _ if self.level.is_background => "in the background".to_owned(),
            Some(wait) if self.is_load => wait,
            Some(wait) => format!("{wait} × {often}"),
            None => format!("{} waiting", range(calls.requests(), shown)),
        }
    }

    fn detail(&self) -> String {
        let calls = &self.level.all;
        let mut facts = vec![format!("{} waiting", range(calls.requests(), shown)), units::rate(calls.rate)];
        facts.push(format!("{} connections", shown(calls.connections)));
        if calls.opened >= SHOWN_MIN {
            facts.push(format!("{} opened", units::rate(calls.opened)));
        }
        if calls.unread >= SHOWN_MIN {
            facts.push(format!("{} responses unread", shown(calls.unread)));
        }
        facts.join(", ")
    }
}

fn table(variants: &[VariantCalls<'_>]) -> Table {
    let mut columns = vec![Column::left("calls").short("who waits for whom")];
    let figures = ["time per call", "per request", "waiting", "per second", "connections", "opened", "received"];
    columns.extend(figures.map(Column::right));
    columns[5].spared = Some(2);
    columns[6].spared = Some(1);
    columns[7].spared = Some(0);
    let group = |one: &VariantCalls<'_>| {
        let title = (variants.len() > 1).then(|| Phrase::from(one.title()));
        Group { title, rows: one.edges.iter().map(|edge| row(edge, &one.calls(edge))).collect(), is_for_page: false }
    };
    Table::grouped(columns, variants.iter().map(group).collect()).terminal_rows(TERMINAL_MAX)
}

fn row(edge: &CallEdge, calls: &EdgeCalls<'_>) -> Row {
    let all = &calls.level.all;
    let small = if calls.level.is_background { "in the background" } else { "" };
    let known = |text: Option<String>| text.map_or_else(Figure::unknown, Figure::new);
    let is_counted = all.rate > 0.0;
    let figures = [
        Figure::new(ends_of(edge)).small(small),
        known(calls.wait()),
        known(calls.per_request.map(units::number)),
        Figure::new(range(all.requests(), shown)),
        known(is_counted.then(|| units::rate(all.rate))),
        Figure::new(shown(all.connections)),
        known((all.opened >= SHOWN_MIN).then(|| units::rate(all.opened))),
        known(is_counted.then(|| units::bytes(all.received_bytes / all.rate))),
    ];
    Row::new(figures.map(Cell::from))
}

fn ends_of(edge: &CallEdge) -> String {
    format!("{} → {}", end(&edge.caller), end(&edge.callee))
}

/// Name of a node for people.
fn end(name: &str) -> &str {
    match name {
        names::GENERATOR => "load",
        names::OTHER_PEERS => "other addresses",
        other => other,
    }
}

fn shown(value: f64) -> String {
    if value < SHOWN_MIN { "0".to_owned() } else { units::number(value) }
}

fn counted(requests: String) -> String {
    if requests == "1" { "1 request".to_owned() } else { format!("{requests} requests") }
}

/// The middle of narrow bounds, else both; their unit once if it is the same.
fn range(of: Bounds, text: fn(f64) -> String) -> String {
    let (low, high) = (text(of.low), text(of.high));
    if of.is_narrow(NARROW) || low == high {
        return text(of.middle());
    }
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    let low = low.split(' ').next().filter(|_| unit(&low) == unit(&high)).unwrap_or(&low);
    format!("{low} to {high}")
}

#[cfg(test)]
mod tests {
    use narrows_model::call_graph::{CallFigures, CallNode};

    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture;

    /// Orders that call a partner twice for each request, a database, and a broker whose messages they wait for.
    fn called() -> Outcome {
        let mut outcome = fixture::stepped_outcome();
        let levels = outcome.limits[0].levels.len();
        let node = |name: &str, kind, requests: f64| CallNode {
            name: name.to_owned(),
            kind,
            requests: vec![requests; if kind == NodeKind::Client { 0 } else { levels }],
        };
        let edge = |caller: &str, callee: &str, all: CallFigures, is_background| CallEdge {
            caller: caller.to_owned(),
            callee: callee.to_owned(),
            levels: vec![CallLevel { all, is_background, ..CallLevel::default() }; levels],
        };
        let calls = |outstanding, undecided, rate| CallFigures {
            outstanding,
            undecided,
            rate,
            connections: 16.0,
            received_bytes: 2_000.0 * rate,
            ..CallFigures::default()
        };
        let opened = CallFigures { opened: 352.0, ..calls(9.0, 0.5, 352.0) };
        let graph = CallGraph {
            nodes: vec![
                node("10.0.0.9:443", NodeKind::Outside, 9.2),
                node("broker", NodeKind::Store, 0.0),
                node(names::GENERATOR, NodeKind::Client, 0.0),
                node("orders", NodeKind::Service, 4.6),
                node("postgres", NodeKind::Store, 2.2),
            ],
            edges: vec![
                edge(names::GENERATOR, "orders", calls(16.0, 0.0, 176.0), false),
                edge("orders", "10.0.0.9:443", opened, false),
                edge("orders", "broker", calls(1.0, 0.0, 0.5), true),
                edge("orders", "postgres", calls(1.0, 2.4, 176.0), false),
            ],
        };
        outcome.call_graphs = vec![graph, CallGraph::default()];
        outcome
    }

    fn without_spans(mut outcome: Outcome) -> Outcome {
        outcome.evidence.trials.iter_mut().for_each(|trial| trial.spans_total = 0);
        outcome
    }

    #[test]
    fn a_terminal_lists_calls_where_there_are_no_spans() {
        insta::assert_snapshot!(in_terminal(section, &without_spans(called()), 110), @r"
        who waits for whom                     time per call  per request    waiting  per second  connections  opened
        ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
        load → orders                                90.9 ms            –         16       176/s           16       –
        orders → 10.0.0.9:443                        26.3 ms            2       9.25       352/s           16   352/s
        orders → postgres                    5.68 to 19.3 ms            1  1 to 3.40       176/s           16       –
        orders → broker (in the background)           2.00 s            –          1      0.50/s           16       –
        ");
        assert_eq!(in_terminal(section, &called(), 110), "");
    }

    #[test]
    fn a_page_draws_them() {
        let page = in_page(section, &called());
        for expected in [
            ">26.3 ms × 2/request<",
            ">5.68 to 19.3 ms × 1/request<",
            ">in the background<",
            ">load<",
            ">16 users<",
            "9.20 requests here",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        assert_eq!(page.matches(" most\"").count() + page.matches(" most ").count(), 1, "{page}");
    }

    #[test]
    fn a_system_that_calls_nothing_has_no_section() {
        let mut outcome = called();
        outcome.call_graphs[0].edges.truncate(1);
        assert_eq!(in_page(section, &outcome), "");
        assert_eq!(in_page(section, &fixture::stepped_outcome()), "");
    }
}
