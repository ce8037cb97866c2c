//! A call graph as inline SVG: callers to the left of what they call, lines as wide as requests wait.
//!
//! The layout is Sugiyama's ("Methods for visual understanding of hierarchical system structures", 1981) in brief: a node's
//! column is the longest way to it, a line that passes a column has a slot there, and slots are ordered by the mean place of
//! what they are connected to.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use maud::{Markup, html};

use super::cut;

const NODE_WIDTH: f64 = 140.0;
const NODE_HEIGHT: f64 = 46.0;
/// Between two columns, with room for a label.
const GAP: f64 = 172.0;
/// Between two nodes of a column.
const NODE_GAP: f64 = 22.0;
/// Height that a line takes in a column that it passes.
const PASSAGE_HEIGHT: f64 = 18.0;
const MARGIN: f64 = 8.0;
/// From a line to its label.
const LABEL_GAP: f64 = 5.0;
/// Least distance between two labels.
const LABEL_HEIGHT: f64 = 16.0;
const NAME_CHARS_MAX: usize = 17;
const LINE_WIDTH: (f64, f64) = (1.4, 9.0);
const ARROW: f64 = 9.0;
/// Rounds of ordering.
const SWEEPS: usize = 4;

/// Parts of the drawing.
#[derive(Debug, Default)]
pub(crate) struct CallGraphDrawing {
    /// Meaning of the picture, for those who do not see it.
    pub(crate) title: String,
    pub(crate) nodes: Vec<DrawnNode>,
    pub(crate) edges: Vec<DrawnEdge>,
}

/// A box.
#[derive(Debug, Default)]
pub(crate) struct DrawnNode {
    pub(crate) name: String,
    /// Second line of text; may be empty.
    pub(crate) figure: String,
    /// Style sheet's class of its colour.
    pub(crate) colour: &'static str,
    /// Whether it is outside the system that is measured.
    pub(crate) is_outside: bool,
    /// Whether more requests are here than anywhere else.
    pub(crate) stands_out: bool,
}

/// A line.
#[derive(Debug, Default)]
pub(crate) struct DrawnEdge {
    /// Places among the nodes.
    pub(crate) caller: usize,
    pub(crate) callee: usize,
    pub(crate) label: String,
    /// Figures on hover.
    pub(crate) detail: String,
    /// Width, 0 to 1.
    pub(crate) weight: f64,
}

impl DrawnEdge {
    fn width(&self) -> f64 {
        LINE_WIDTH.0 + self.weight.clamp(0.0, 1.0) * (LINE_WIDTH.1 - LINE_WIDTH.0)
    }
}

/// The picture.
pub(crate) fn svg(drawing: &CallGraphDrawing) -> Markup {
    let layout = Layout::of(drawing);
    let labels = layout.labels(drawing);
    html! {
        div.scroll.graph {
            svg.calls width=(number(layout.width())) height=(number(layout.height))
                viewBox=(format!("0 0 {} {}", number(layout.width()), number(layout.height)))
                role="img" aria-label=(drawing.title) {
                @for (edge, way) in drawing.edges.iter().zip(&layout.ways) { (line(edge, way, &layout)) }
                @for (at, node) in drawing.nodes.iter().enumerate() { (boxed(node, layout.corner(at))) }
                @for (edge, place) in drawing.edges.iter().zip(labels) {
                    text.call.mid x=(number(place.x)) y=(number(place.y)) { (edge.label) title { (edge.detail) } }
                }
            }
        }
        "\n"
    }
}

fn boxed(node: &DrawnNode, corner: Point) -> Markup {
    let (x, y) = (corner.x, corner.y);
    let lines = if node.figure.is_empty() { [NODE_HEIGHT / 2.0 + 5.0, 0.0] } else { [20.0, 36.0] };
    html! {
        g.node.outside[node.is_outside].most[node.stands_out].(node.colour) {
            title { (node.name) }
            rect x=(number(x)) y=(number(y)) width=(number(NODE_WIDTH)) height=(number(NODE_HEIGHT)) rx="7" {}
            text.node-name x=(number(x + 12.0)) y=(number(y + lines[0])) { (cut(&node.name, NAME_CHARS_MAX)) }
            @if !node.figure.is_empty() { text x=(number(x + 12.0)) y=(number(y + lines[1])) { (node.figure) } }
        }
    }
}

fn line(edge: &DrawnEdge, way: &Way, layout: &Layout) -> Markup {
    let points: Vec<Point> = way.slots.iter().map(|slot| layout.center(*slot)).collect();
    let half = NODE_WIDTH / 2.0;
    let mut path = String::new();
    let mut from = points[0].moved(half);
    if way.is_turned {
        from = from.moved(ARROW);
    }
    let _ = write!(path, "M{} {}", number(from.x), number(from.y));
    for (at, center) in points.iter().enumerate().skip(1) {
        let is_last = at + 1 == points.len();
        let to = center.moved(if is_last && !way.is_turned { -half - ARROW } else { -half });
        let middle = f64::midpoint(from.x, to.x);
        let (x, y) = (number(to.x), number(to.y));
        let _ = write!(path, " C{} {} {} {y} {x} {y}", number(middle), number(from.y), number(middle));
        from = center.moved(half);
        if !is_last {
            let _ = write!(path, " H{}", number(from.x));
        }
    }
    let width = edge.width();
    let last = points.len() - 1;
    let (tip, turn) = if way.is_turned { (points[0].moved(half), 1.0) } else { (points[last].moved(-half), -1.0) };
    let (back, wing) = (tip.x + turn * ARROW, width / 2.0 + 3.5);
    let arrow = [(tip.x, tip.y), (back, tip.y - wing), (back, tip.y + wing)];
    let arrow: Vec<String> = arrow.iter().map(|corner| format!("{},{}", number(corner.0), number(corner.1))).collect();
    html! {
        g.edge {
            title { (edge.detail) }
            path d=(path) stroke-width=(number(width)) {}
            polygon points=(arrow.join(" ")) {}
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Point {
    x: f64,
    y: f64,
}

impl Point {
    fn moved(self, right: f64) -> Self {
        Self { x: self.x + right, ..self }
    }
}

/// Place in a column: of a node, or of a line that passes.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    column: usize,
    /// Position of its center.
    y: f64,
    height: f64,
    /// Order among the slots of its column.
    order: f64,
}

/// The slots of a line from left to right.
#[derive(Debug, Default)]
struct Way {
    slots: Vec<usize>,
    /// Whether the caller is at its right end.
    is_turned: bool,
}

#[derive(Debug, Default)]
struct Layout {
    /// Those of the nodes first, in their order.
    slots: Vec<Slot>,
    ways: Vec<Way>,
    columns: usize,
    height: f64,
}

impl Layout {
    fn of(drawing: &CallGraphDrawing) -> Self {
        let turned = turned(drawing);
        let ends = |at: usize| {
            let edge = &drawing.edges[at];
            if turned.contains(&at) { (edge.callee, edge.caller) } else { (edge.caller, edge.callee) }
        };
        let mut columns = vec![0; drawing.nodes.len()];
        for _ in 0..drawing.nodes.len() {
            for at in 0..drawing.edges.len() {
                let (left, right) = ends(at);
                columns[right] = columns[right].max(if left == right { 0 } else { columns[left] + 1 });
            }
        }
        let slot = |column: &usize| Slot { column: *column, height: NODE_HEIGHT, ..Slot::default() };
        let mut layout = Self {
            slots: columns.iter().map(slot).collect(),
            columns: columns.iter().max().map_or(0, |last| last + 1),
            ..Self::default()
        };
        for at in 0..drawing.edges.len() {
            let (left, right) = ends(at);
            let mut slots = vec![left];
            for column in columns[left] + 1..columns[right] {
                slots.push(layout.slots.len());
                layout.slots.push(Slot { column, height: PASSAGE_HEIGHT, ..Slot::default() });
            }
            slots.push(right);
            layout.ways.push(Way { slots, is_turned: turned.contains(&at) });
        }
        layout.sort();
        layout.place();
        layout
    }

    /// Orders the slots of each column by the mean order of their neighbours.
    fn sort(&mut self) {
        let mut neighbours: HashMap<usize, Vec<usize>> = HashMap::new();
        for pair in self.ways.iter().flat_map(|way| way.slots.windows(2)) {
            neighbours.entry(pair[0]).or_default().push(pair[1]);
            neighbours.entry(pair[1]).or_default().push(pair[0]);
        }
        self.number(|_, slot| slot as f64);
        for _ in 0..SWEEPS {
            self.number(|slots, slot| {
                let of = neighbours.get(&slot).map_or(&[][..], Vec::as_slice);
                let sum: f64 = of.iter().map(|neighbour| slots[*neighbour].order).sum();
                if of.is_empty() { slots[slot].order } else { sum / of.len() as f64 }
            });
        }
    }

    /// Gives each slot its order in its column, from the middle of the column, by a key.
    fn number(&mut self, key: impl Fn(&[Slot], usize) -> f64) {
        for column in 0..self.columns {
            let mut members: Vec<(f64, usize)> =
                self.members(column).map(|slot| (key(&self.slots, slot), slot)).collect();
            members.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let middle = members.len().saturating_sub(1) as f64 / 2.0;
            for (at, (_, slot)) in members.into_iter().enumerate() {
                self.slots[slot].order = at as f64 - middle;
            }
        }
    }

    fn members(&self, column: usize) -> impl Iterator<Item = usize> {
        (0..self.slots.len()).filter(move |slot| self.slots[*slot].column == column)
    }

    /// Stacks the slots of each column, and centers the columns.
    fn place(&mut self) {
        let mut heights = Vec::new();
        for column in 0..self.columns {
            let mut members: Vec<usize> = self.members(column).collect();
            members.sort_by(|a, b| self.slots[*a].order.total_cmp(&self.slots[*b].order));
            let mut top = 0.0;
            for slot in members {
                let slot = &mut self.slots[slot];
                slot.y = top + slot.height / 2.0;
                top += slot.height + NODE_GAP;
            }
            heights.push(top - NODE_GAP);
        }
        let tallest = heights.iter().copied().fold(0.0, f64::max);
        for slot in &mut self.slots {
            slot.y += MARGIN + (tallest - heights[slot.column]) / 2.0;
        }
        self.height = tallest + 2.0 * MARGIN;
    }

    fn width(&self) -> f64 {
        let gaps = self.columns.saturating_sub(1) as f64;
        self.columns as f64 * NODE_WIDTH + gaps * GAP + 2.0 * MARGIN
    }

    fn center(&self, slot: usize) -> Point {
        let slot = &self.slots[slot];
        Point { x: MARGIN + slot.column as f64 * (NODE_WIDTH + GAP) + NODE_WIDTH / 2.0, y: slot.y }
    }

    fn corner(&self, node: usize) -> Point {
        let center = self.center(node);
        Point { x: center.x - NODE_WIDTH / 2.0, y: center.y - NODE_HEIGHT / 2.0 }
    }

    /// The place of each label: above the first part of its line, away from other labels.
    fn labels(&self, drawing: &CallGraphDrawing) -> Vec<Point> {
        let place = |(way, edge): (&Way, &DrawnEdge)| {
            let (from, to) = (self.center(way.slots[0]), self.center(way.slots[1]));
            let above = edge.width() / 2.0 + LABEL_GAP;
            Point { x: f64::midpoint(from.x, to.x), y: f64::midpoint(from.y, to.y) - above }
        };
        let mut places: Vec<Point> = self.ways.iter().zip(&drawing.edges).map(place).collect();
        let mut order: Vec<usize> = (0..drawing.edges.len()).collect();
        order.sort_by(|a, b| places[*a].x.total_cmp(&places[*b].x).then(places[*a].y.total_cmp(&places[*b].y)));
        for pair in order.windows(2) {
            let (above, below) = (places[pair[0]], places[pair[1]]);
            if (above.x - below.x).abs() < 1.0 && below.y - above.y < LABEL_HEIGHT {
                places[pair[1]].y = above.y + LABEL_HEIGHT;
            }
        }
        places
    }
}

/// The edges that lead back to a caller, by a search from the nodes in their order. The layout draws them the other way
/// around.
fn turned(drawing: &CallGraphDrawing) -> BTreeSet<usize> {
    let mut turned = BTreeSet::new();
    let called: BTreeSet<usize> = drawing.edges.iter().map(|edge| edge.callee).collect();
    let mut roots: Vec<usize> = (0..drawing.nodes.len()).collect();
    roots.sort_by_key(|node| called.contains(node));
    let mut is_done = vec![false; drawing.nodes.len()];
    for root in roots {
        // Nodes on the way from the root, each with the edge that comes next.
        let mut way: Vec<(usize, usize)> = if is_done[root] { Vec::new() } else { vec![(root, 0)] };
        while let Some((node, next)) = way.last_mut() {
            let (node, at) = (*node, *next);
            *next += 1;
            let Some(edge) = drawing.edges.get(at) else {
                is_done[node] = true;
                way.pop();
                continue;
            };
            if edge.caller == node && way.iter().any(|(on_way, _)| *on_way == edge.callee) {
                turned.insert(at);
            } else if edge.caller == node && !is_done[edge.callee] {
                way.push((edge.callee, 0));
            }
        }
    }
    turned
}

fn number(value: f64) -> String {
    format!("{value:.1}").trim_end_matches(".0").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(nodes: usize, edges: &[(usize, usize)]) -> CallGraphDrawing {
        let node = |at| DrawnNode { name: format!("node {at}"), ..DrawnNode::default() };
        let edge = |ends: &(usize, usize)| DrawnEdge { caller: ends.0, callee: ends.1, ..DrawnEdge::default() };
        CallGraphDrawing {
            title: String::new(),
            nodes: (0..nodes).map(node).collect(),
            edges: edges.iter().map(edge).collect(),
        }
    }

    #[test]
    fn callees_are_to_the_right_of_all_their_callers() {
        let columns = |nodes, edges: &[(usize, usize)]| {
            let layout = Layout::of(&drawing(nodes, edges));
            layout.slots[..nodes].iter().map(|slot| slot.column).collect::<Vec<_>>()
        };
        assert_eq!(columns(4, &[(0, 1), (1, 2), (2, 3), (1, 3)]), [0, 1, 2, 3]);
        assert_eq!(columns(3, &[(0, 1), (1, 2), (2, 1)]), [0, 1, 2], "a call back");
        assert_eq!(columns(2, &[(0, 1), (1, 0)]), [0, 1]);
        assert_eq!(columns(2, &[(0, 1), (1, 1)]), [0, 1], "replicas that call each other");
    }

    #[test]
    fn boxes_and_labels_do_not_overlap() {
        let drawing = drawing(7, &[(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4), (0, 6), (4, 5), (3, 6), (2, 5)]);
        let layout = Layout::of(&drawing);
        for (at, slot) in layout.slots.iter().enumerate() {
            for other in layout.slots[at + 1..].iter().filter(|other| other.column == slot.column) {
                let least = (slot.height + other.height) / 2.0;
                assert!((slot.y - other.y).abs() >= least, "{slot:?} {other:?}");
            }
            assert!(slot.y - slot.height / 2.0 >= 0.0 && slot.y + slot.height / 2.0 <= layout.height);
        }
        let labels = layout.labels(&drawing);
        for (at, label) in labels.iter().enumerate() {
            let others = labels[at + 1..].iter().filter(|other| (other.x - label.x).abs() < 1.0);
            others.for_each(|other| assert!((other.y - label.y).abs() >= LABEL_HEIGHT - 0.01, "{label:?} {other:?}"));
        }
        assert!(svg(&drawing).into_string().contains("<path"));
    }
}
