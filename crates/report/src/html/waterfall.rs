//! One request from end to end: its spans as nested bars on one time axis.
//!
//! Every row opens to its attributes without any script. Siblings that do the same (service, name, query and what it
//! calls are the same) are folded into one row with all their bars on it and open to the single ones, so that an N+1 is one look, not five
//! hundred rows.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, html};
use narrows_model::trace::{Forest, Span, SpanId, SpanKind, Trace, hex};
use narrows_model::units;

use super::axis::{Axis, Unit};
use super::cut;
use super::lanes::Lanes;
use super::palette::Palette;
use super::span_details;
use super::waits::{Waits, is_throttled};
use crate::figures::plural;

/// Rows of one waterfall at most.
pub(super) const ROWS_MAX: usize = 200;
/// This many siblings that do the same become one row.
const FOLD_FROM: usize = 3;
/// Rows inside a folded one at most.
const FOLDED_SHOWN_MAX: usize = 30;
/// Bars on one folded row at most.
const BARS_MAX: usize = 150;
/// Deeper spans are left out and counted: no call chain that a person reads is that deep.
const DEPTH_MAX: usize = 100;
/// Deeper rows are not indented further.
const INDENT_MAX: usize = 14;
/// Characters of a query shown on its row.
const QUERY_CHARS_MAX: usize = 140;
/// A wait is named on its row from this share of the time scale on; shorter ones show it on hover.
const WAIT_NAMED_FROM: f64 = 0.15;

/// A place in the tree of rows.
#[derive(Debug)]
enum Node<'a> {
    One(&'a Span, Vec<Node<'a>>),
    /// Siblings that do the same.
    Folded(Vec<(&'a Span, Vec<Node<'a>>)>),
}

/// The anchor of a trace in the page.
pub(crate) fn anchor(trace_id: &str) -> String {
    format!("trace-{trace_id}")
}

/// How long after the request a span may end and still be drawn whole, nanoseconds: an hour. A later end was lost, and
/// would leave no room for the request.
const LATER_NS_MAX: i64 = 3_600_000_000_000;

/// From the first span's start to the last one's end, at least one nanosecond.
pub(super) fn length_ns(trace: &Trace) -> f64 {
    let start_ns = trace.spans.iter().map(|span| span.start_ns).min().unwrap_or(0);
    let latest_ns = trace.root().map_or(i64::MAX, |root| root.end_ns.saturating_add(LATER_NS_MAX));
    let ends = trace.spans.iter().map(|span| span.end_ns).filter(|end_ns| *end_ns <= latest_ns);
    let end_ns = ends.max().unwrap_or(0);
    end_ns.saturating_sub(start_ns).max(1) as f64
}

/// Size and colours of a waterfall.
#[derive(Clone, Copy)]
pub(super) struct Scale<'a> {
    /// Length of the time scale.
    pub(super) length_ns: f64,
    pub(super) palette: &'a Palette,
    /// Rows at most.
    pub(super) rows_max: usize,
    /// The critical path; empty where it is not drawn.
    pub(super) path: &'a PathIntervals,
}

/// Time of a critical path in spans, each by its id and start: from and to.
pub(super) type PathIntervals = HashMap<(SpanId, i64), Vec<(i64, i64)>>;

/// One trace as HTML. `marked` are span ids that show a finding.
pub(super) fn html(trace: &Trace, marked: &BTreeSet<&str>, scale: &Scale<'_>) -> Markup {
    let start_ns = trace.spans.iter().map(|span| span.start_ns).min().unwrap_or(0);
    let length_ns = scale.length_ns;
    let axis = Axis::linear(length_ns, Unit::Duration);
    let nodes = tree(trace);
    let omitted = trace.spans.len() - nodes.iter().map(Node::spans).sum::<usize>();
    let (palette, rows_left) = (scale.palette, scale.rows_max);
    let (waits, path) = (Waits::new(trace), scale.path);
    let mut drawing = Drawing { start_ns, length_ns, marked, palette, waits, path, rows_left, omitted };
    let rows: Vec<Markup> = nodes.iter().map(|node| drawing.node(node, 0)).collect();
    let step = axis.ticks.get(1).map_or(100.0, |tick| tick / length_ns * 100.0);
    let ticks = axis.ticks.iter().filter(|tick| **tick <= length_ns * 0.9);
    html! {
        div.waterfall id=(anchor(&hex(&trace.id))) style=(format!("--step:{step:.3}%")) {
            div.scale {
                span {}
                span.ticks { @for tick in ticks {
                    span style=(format!("left:{:.2}%", tick / length_ns * 100.0)) { (axis.label(*tick)) }
                } }
                span {}
            }
            @for row in rows { (row) }
        }
        @if drawing.omitted > 0 { p.note { (plural(drawing.omitted, "more span", "more spans")) " not shown." } }
        "\n"
    }
}

/// The spans as a forest; a span whose parent did not arrive is a root.
fn tree(trace: &Trace) -> Vec<Node<'_>> {
    let forest = Forest::new(trace);
    fold((0..trace.spans.len()).filter(|at| forest.parent(*at).is_none()), &forest, 0)
}

fn fold<'a>(siblings: impl Iterator<Item = usize>, forest: &Forest<'a>, depth: usize) -> Vec<Node<'a>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: HashMap<_, usize> = HashMap::new();
    for at in siblings {
        let span = forest.span(at);
        let callee = forest.children(at).next().map(|callee| forest.span(callee));
        let callee = callee.map(|callee| (&callee.service, &callee.name));
        let key = (&span.service, &span.name, span.kind, &span.facts.db_query, &span.facts.http_route, callee);
        let index = *group_of.entry(key).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    let below = |at: usize| {
        let shown = if depth < DEPTH_MAX { usize::MAX } else { 0 };
        let children: Vec<usize> = forest.children(at).take(shown).collect();
        (forest.span(at), fold(children.into_iter(), forest, depth + 1))
    };
    let mut nodes = Vec::new();
    for group in groups {
        if group.len() >= FOLD_FROM {
            nodes.push(Node::Folded(group.into_iter().map(below).collect()));
        } else {
            nodes.extend(group.into_iter().map(below).map(|(span, below)| Node::One(span, below)));
        }
    }
    nodes.sort_by_key(Node::start_ns);
    nodes
}

impl Node<'_> {
    fn start_ns(&self) -> i64 {
        match self {
            Node::One(span, _) => span.start_ns,
            Node::Folded(spans) => spans.iter().map(|(span, _)| span.start_ns).min().unwrap_or(0),
        }
    }

    fn spans(&self) -> usize {
        match self {
            Node::One(_, below) => 1 + below.iter().map(Node::spans).sum::<usize>(),
            Node::Folded(spans) => {
                spans.iter().map(|(_, below)| 1 + below.iter().map(Node::spans).sum::<usize>()).sum()
            }
        }
    }
}

struct Drawing<'a> {
    start_ns: i64,
    length_ns: f64,
    marked: &'a BTreeSet<&'a str>,
    palette: &'a Palette,
    waits: Waits,
    path: &'a PathIntervals,
    rows_left: usize,
    omitted: usize,
}

impl Drawing<'_> {
    fn node(&mut self, node: &Node<'_>, depth: usize) -> Markup {
        if self.rows_left == 0 {
            self.omitted += node.spans();
            return html! {};
        }
        self.rows_left -= 1;
        match node {
            Node::One(span, below) => {
                let row = self.row(span, depth);
                let below: Vec<Markup> = below.iter().map(|node| self.node(node, depth + 1)).collect();
                html! { (row) @for node in below { (node) } }
            }
            Node::Folded(spans) => self.folded(spans, depth),
        }
    }

    fn row(&self, span: &Span, depth: usize) -> Markup {
        html! {
            details.span.(self.classes(&[span])) {
                summary {
                    (label(span, depth, &failure(span)))
                    span.when { (self.bar(span, "")) }
                    span.long { (units::duration(span.duration_ns() as f64)) }
                }
                (span_details::details(span, self.start_ns))
            }
        }
    }

    fn folded(&mut self, spans: &[(&Span, Vec<Node<'_>>)], depth: usize) -> Markup {
        let Some((first, _)) = spans.first() else { return html! {} };
        let all: Vec<&Span> = spans.iter().map(|(span, _)| *span).collect();
        let mut drawn: Vec<&Span> = all.iter().step_by(all.len().div_ceil(BARS_MAX)).copied().collect();
        drawn.sort_by_key(|span| span.start_ns);
        let lanes = Lanes::new(drawn.iter().map(|span| (span.start_ns, span.end_ns)));
        let total_ns: f64 = all.iter().map(|span| span.duration_ns() as f64).sum();
        let lead = html! { em { "× " (all.len()) } " " (failures(&all)) };
        let mut hidden = spans.len();
        let mut rows: Vec<Markup> = Vec::new();
        for (span, below) in spans.iter().take(FOLDED_SHOWN_MAX) {
            if self.rows_left == 0 {
                break;
            }
            self.rows_left -= 1;
            hidden -= 1;
            rows.push(self.row(span, depth + 1));
            rows.extend(below.iter().map(|node| self.node(node, depth + 2)));
        }
        html! {
            details.span.fold.(self.classes(&all)) {
                summary {
                    (label(first, depth, &lead))
                    span.when style=[lanes.row_style()] {
                        @for (n, span) in drawn.iter().enumerate() { (self.bar(span, &lanes.style(n))) }
                    }
                    span.long title="all together" { "Σ " (units::duration(total_ns)) }
                }
                @for row in rows { (row) }
                @if hidden > 0 { p.note { (hidden) " more like these" } }
            }
        }
    }

    /// A span's bar, and the wait after it. `lane` is the style of a bar in a lane.
    fn bar(&self, span: &Span, lane: &str) -> Markup {
        let is_bad = span.has_failed() || is_throttled(span);
        html! {
            i class=[is_bad.then_some("bad")] style={ (self.place(span.start_ns, span.duration_ns() as f64)) (lane) } {}
            @for (from_ns, to_ns) in self.path.get(&(span.span_id, span.start_ns)).into_iter().flatten() {
                s style={ (self.place(*from_ns, (to_ns - from_ns) as f64)) (lane) } {}
            }
            @if let Some(wait_ns) = self.waits.after_ns(span) { (self.wait(span.end_ns, wait_ns as f64, lane)) }
        }
    }

    /// The time until the next attempt, named where there is room for it.
    fn wait(&self, from_ns: i64, wait_ns: f64, lane: &str) -> Markup {
        let text = format!("waits {}", units::duration(wait_ns));
        let is_named = lane.is_empty() && wait_ns / self.length_ns >= WAIT_NAMED_FROM;
        html! {
            u style={ (self.place(from_ns, wait_ns)) (lane) } title=(text) { @if is_named { span { (text) } } }
        }
    }

    fn place(&self, from_ns: i64, length_ns: f64) -> String {
        let left = from_ns.saturating_sub(self.start_ns) as f64 / self.length_ns * 100.0;
        let left = left.clamp(0.0, 100.0);
        format!("left:{left:.2}%;width:{:.2}%", (length_ns / self.length_ns * 100.0).min(100.0 - left))
    }

    fn classes(&self, spans: &[&Span]) -> String {
        let Some(first) = spans.first() else { return String::new() };
        let mut classes = vec![self.palette.class(&first.service)];
        if first.kind != SpanKind::Server && first.kind != SpanKind::Consumer {
            classes.push("light");
        }
        if spans.iter().all(|span| span.has_failed() || is_throttled(span)) {
            classes.push("failed");
        }
        if spans.iter().any(|span| self.marked.contains(hex(&span.span_id).as_str())) {
            classes.push("marked");
        }
        classes.join(" ")
    }
}

fn failure(span: &Span) -> Markup {
    html! {
        @if is_throttled(span) { strong { "429" } " " } @else if span.has_failed() { strong { "failed" } " " }
    }
}

/// Number of spans of one row that were refused, and number that failed otherwise.
fn failures(spans: &[&Span]) -> Markup {
    let refused = spans.iter().filter(|span| is_throttled(span)).count();
    let failed = spans.iter().filter(|span| span.has_failed() && !is_throttled(span)).count();
    html! {
        @for (count, word) in [(refused, "got 429"), (failed, "failed")] {
            @if count > 0 { strong { (count) " " (word) } " " }
        }
    }
}

/// A span's name, and the statement of a call to a database, which some libraries use as the name.
fn label(span: &Span, depth: usize, lead: &Markup) -> Markup {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let query = span.facts.db_query.as_deref().map(one_line);
    let name = if query.as_deref() == Some(one_line(&span.name).as_str()) { "" } else { span.name.as_str() };
    html! {
        span.what style={ "--depth:" (depth.min(INDENT_MAX)) } {
            (lead) b { (span.service) } " " (cut(name, QUERY_CHARS_MAX))
            @if let Some(query) = query { " " code { (cut(&query, QUERY_CHARS_MAX)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn drawn(trace: &Trace, palette: &Palette, rows_max: usize, length_ns: f64) -> String {
        html(trace, &BTreeSet::new(), &Scale { length_ns, palette, rows_max, path: &PathIntervals::default() })
            .into_string()
    }

    fn shape(nodes: &[Node<'_>]) -> String {
        let one = |span: &Span, below: &[Node<'_>]| match shape(below) {
            inner if inner.is_empty() => span.name.clone(),
            inner => format!("{}({inner})", span.name),
        };
        let parts: Vec<String> = nodes
            .iter()
            .map(|node| match node {
                Node::One(span, below) => one(span, below),
                Node::Folded(spans) => format!("{}×{}", spans.len(), one(spans[0].0, &spans[0].1)),
            })
            .collect();
        parts.join(" ")
    }

    #[test]
    fn siblings_that_do_the_same_are_one_row() {
        let cases = [
            (25, "GET /orders(GET(GET /orders(SELECT shop.orders 24×SELECT shop.customers render)))"),
            (3, "GET /orders(GET(GET /orders(SELECT shop.orders SELECT shop.customers SELECT shop.customers render)))"),
            (1, "GET /orders(GET(GET /orders(SELECT shop.orders render)))"),
        ];
        for (queries, expected) in cases {
            assert_eq!(shape(&tree(&fixture::n_plus_one_trace(queries))), expected);
        }
    }

    #[test]
    fn a_span_without_an_end_leaves_room_for_the_request() {
        let mut trace = fixture::n_plus_one_trace(3);
        let length = length_ns(&trace);
        let last = trace.spans.len() - 1;
        trace.spans[last].end_ns += 1_000 * LATER_NS_MAX;
        assert_eq!(length_ns(&trace), length);
    }

    #[test]
    fn rows_are_bounded_and_the_rest_is_counted() {
        let trace = fixture::n_plus_one_trace(3);
        let palette = Palette::new(&fixture::outcome().evidence);
        let page = drawn(&trace, &palette, 4, length_ns(&trace));
        assert_eq!(page.matches("<details").count(), 4);
        assert!(page.contains("3 more spans not shown"), "{page}");
    }

    #[test]
    fn five_hundred_queries_fit_one_folded_row() {
        let trace = fixture::n_plus_one_trace(250);
        let palette = Palette::new(&fixture::outcome().evidence);
        let page = drawn(&trace, &palette, ROWS_MAX, length_ns(&trace));
        assert!(page.contains("<em>× 249</em>") && page.contains("219 more like these"));
        assert!(page.matches("<details").count() < 40);
    }

    #[test]
    fn a_call_to_a_database_shows_its_statement_once_and_shortened() {
        let mut span = fixture::n_plus_one_trace(2).spans[3].clone();
        span.name = "SELECT shop.orders".to_owned();
        span.facts.db_query = Some(format!("SELECT id\n  FROM orders WHERE note = '{}'", "x".repeat(QUERY_CHARS_MAX)));
        let row = label(&span, 0, &html! {}).into_string();
        assert!(row.contains("</b> SELECT shop.orders <code>SELECT id FROM orders WHERE note = 'xxx"), "{row}");
        assert!(row.contains('…') && row.len() < 2 * QUERY_CHARS_MAX, "{row}");
        assert!(!row.contains(&hex(&span.span_id)), "{row}");
        span.facts.db_query = Some("SELECT  1".to_owned());
        span.name = "SELECT 1".to_owned();
        let row = label(&span, 0, &html! {}).into_string();
        assert_eq!(row.matches("SELECT 1").count(), 1, "{row}");
    }

    #[test]
    fn a_refused_attempt_stands_out_among_its_siblings_and_the_wait_is_named() {
        let outcome = fixture::drones::outcome();
        let trace = &outcome.evidence.trials[0].traces[0];
        let palette = Palette::new(&outcome.evidence);
        let page = drawn(trace, &palette, ROWS_MAX, length_ns(trace));
        assert!(page.contains("<em>× 10</em> <strong>1 got 429</strong>"), "{page}");
        assert!(page.contains("<strong>429</strong> <b>drone-scheduler</b>"), "{page}");
        assert_eq!(
            (page.matches("<i class=\"bad\"").count(), page.matches(">waits 492 ms</span></u>").count()),
            (2, 2)
        );
        let small = drawn(trace, &palette, ROWS_MAX, length_ns(trace) * 10.0);
        assert!(small.contains("title=\"waits 492 ms\"></u>"), "{small}");
    }

    #[test]
    fn siblings_at_once_lie_in_lanes_and_siblings_in_turn_do_not() {
        let outcome = fixture::drones::outcome();
        let palette = Palette::new(&outcome.evidence);
        let page = |trial: usize| {
            let trace = &outcome.evidence.trials[trial].traces[0];
            drawn(trace, &palette, ROWS_MAX, length_ns(trace))
        };
        assert!(page(2).contains(";top:38px;height:3px") && !page(1).contains(";top:"), "{}", page(2));
    }

    #[test]
    fn spans_that_name_each_other_as_parent_do_not_hang() {
        let mut trace = fixture::n_plus_one_trace(1);
        let (first, second) = (trace.spans[1].span_id, trace.spans[2].span_id);
        trace.spans[1].parent_id = Some(second);
        trace.spans[2].parent_id = Some(first);
        trace.spans[0].parent_id = Some(trace.spans[0].span_id);
        assert_eq!(shape(&tree(&trace)), "GET /orders GET(GET /orders(SELECT shop.orders render))");
        let palette = Palette::new(&fixture::outcome().evidence);
        let page = drawn(&trace, &palette, ROWS_MAX, length_ns(&trace));
        assert!(page.contains("render") && !page.contains("not shown"), "{page}");
    }
}
