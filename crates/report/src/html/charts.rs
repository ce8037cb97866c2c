//! Line charts as inline SVG.
//!
//! A chart is drawn once at a fixed size and scaled by the page. Lines carry their name at their right end; the ends
//! are moved apart so that names do not overlap. On hover, the page's script reads values back from the geometry
//! and the `data-` attributes, so no value is in the page twice.

use maud::{Markup, html};

use super::axis::{Axis, Scale};
use super::cut;
use super::thin::{Xy, thin};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 470.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 200.0;
/// Least distance between two names at line ends.
const NAME_HEIGHT: f64 = 15.5;
/// Longest name at a line end.
const NAME_CHARS_MAX: usize = 13;
/// Horizontal start of the left axis's name.
const AXIS_NAME_LEFT: f64 = 4.0;
/// About the width of a character of an axis's name.
const CHAR_WIDTH: f64 = 6.4;
/// Longest name on a level.
const LEVEL_CHARS_MAX: usize = 40;

/// A chart to draw.
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    pub(super) x: &'a Axis,
    pub(super) left: &'a Axis,
    /// Name above the left axis.
    pub(super) left_name: &'a str,
    pub(super) right: Option<(&'a Axis, &'a str)>,
    pub(super) lines: Vec<Line<'a>>,
    /// Intervals of time that are shaded, with what they are.
    pub(super) shaded: &'a [Xy],
    /// Dashed levels: value on the left axis, colour class, what it is.
    pub(super) levels: Vec<(f64, &'a str, String)>,
    /// Longer names of lines below the chart: colour class and text.
    pub(super) legend: Vec<(&'a str, String)>,
    /// Points of each line at most.
    pub(super) points_max: usize,
}

/// A line of a chart.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) class: &'a str,
    pub(super) points: &'a [Xy],
    pub(super) side: Side,
    pub(super) label: Label,
}

impl<'a> Line<'a> {
    /// On the left axis, with its name at its end.
    pub(super) fn named(name: &'a str, class: &'a str, points: &'a [Xy]) -> Self {
        Self { name, class, points, side: Side::Left, label: Label::AtEnd }
    }
}

/// Place of a line's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    /// At the line's right end, and on hover.
    AtEnd,
    /// Nowhere but on hover, and there only of the highest such line.
    Highest,
}

/// The axis a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// The chart as a `<figure>`.
pub(super) fn figure(chart: &Chart<'_>) -> Markup {
    let scale = format!("{LEFT} {RIGHT} {}", chart.x.high);
    html! {
        figure.chart {
            figcaption { (chart.title) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(chart.title)
                data-x=(scale) data-y=(format!("{TOP} {BOTTOM}")) {
                @for span in chart.shaded { (shade(chart, span)) }
                (axes(chart))
                @for (value, class, name) in &chart.levels { (level(y_of(chart.left, *value), class, name)) }
                @for line in &chart.lines { (path(chart, line)) }
                @if chart.right.is_none() { (names(chart)) }
            }
            @if !chart.legend.is_empty() {
                ul.legend { @for (class, text) in &chart.legend { li class=(class) { span { (text) } } } }
            }
        }
        "\n"
    }
}

/// A coordinate with one decimal.
fn at(value: f64) -> String {
    format!("{value:.1}")
}

/// A dashed level with its name.
fn level(y: f64, class: &str, name: &str) -> Markup {
    html! {
        line.level.(class) x1=(LEFT) x2=(RIGHT) y1=(at(y)) y2=(at(y)) {}
        text.level-name.end.(class) x=(RIGHT - 3.0) y=(at(y - 4.0)) { (cut(name, LEVEL_CHARS_MAX)) }
    }
}

/// A shaded interval, named where the axis's name leaves room for it.
fn shade(chart: &Chart<'_>, span: &Xy) -> Markup {
    let (from, to) = (x_of(chart.x, span.0), x_of(chart.x, span.1));
    let is_free = from > AXIS_NAME_LEFT + CHAR_WIDTH * (chart.left_name.chars().count() + 1) as f64;
    html! {
        rect.shade x=(at(from)) y=(TOP) width=(at(to - from)) height=(BOTTOM - TOP) {
            title { "warm-up, not counted" }
        }
        @if is_free { text.shade-name x=(at(from + 2.0)) y=(TOP - 6.0) { "warm-up" } }
    }
}

fn x_of(axis: &Axis, value: f64) -> f64 {
    LEFT + axis.position(value) * (RIGHT - LEFT)
}

fn y_of(axis: &Axis, value: f64) -> f64 {
    BOTTOM - axis.position(value) * (BOTTOM - TOP)
}

fn axes(chart: &Chart<'_>) -> Markup {
    let levels = chart.left.ticks.iter().map(|tick| format!("M{LEFT} {:.1}H{RIGHT}", y_of(chart.left, *tick)));
    let marks = chart.x.ticks.iter().map(|tick| format!("M{:.1} {BOTTOM}v4", x_of(chart.x, *tick)));
    let left_class = if chart.right.is_some() { axis_class(chart, Side::Left) } else { "" };
    html! {
        path.grid d=(levels.chain(marks).collect::<String>()) {}
        @for tick in &chart.left.ticks {
            text.tick.end x=(LEFT - 7.0) y=(at(y_of(chart.left, *tick) + 4.0)) { (chart.left.label(*tick)) }
        }
        @for tick in &chart.x.ticks {
            text.tick.mid x=(at(x_of(chart.x, *tick))) y=(BOTTOM + 18.0) { (chart.x.label(*tick)) }
        }
        text.axis.(left_class) x=(AXIS_NAME_LEFT) y="14" { (chart.left_name) }
        @if let Some((axis, name)) = chart.right {
            @for tick in &axis.ticks {
                text.tick x=(RIGHT + 7.0) y=(at(y_of(axis, *tick) + 4.0)) { (axis.label(*tick)) }
            }
            text.axis.end.(axis_class(chart, Side::Right)) x=(WIDTH - 4.0) y="14" { (name) }
        }
    }
}

/// Class of the first line on an axis.
fn axis_class<'a>(chart: &Chart<'a>, side: Side) -> &'a str {
    chart.lines.iter().find(|line| line.side == side).map_or("", |line| line.class)
}

fn axis_of<'a>(chart: &'a Chart<'_>, line: &Line<'_>) -> &'a Axis {
    match (line.side, chart.right) {
        (Side::Right, Some((axis, _))) => axis,
        _ => chart.left,
    }
}

fn path(chart: &Chart<'_>, line: &Line<'_>) -> Markup {
    let axis = axis_of(chart, line);
    let mut d = String::new();
    for interval in thin(line.points, chart.points_max).split(|point| point.1.is_nan()) {
        let points: Vec<String> =
            interval.iter().map(|(x, value)| format!("{:.1},{:.1}", x_of(chart.x, *x), y_of(axis, *value))).collect();
        match points.as_slice() {
            [] => {}
            // A line from a point to itself is drawn as a dot.
            [only] => d += &format!("M{only} {only}"),
            points => d += &format!("M{}", points.join(" ")),
        }
    }
    let scale = match axis.scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
    };
    let highest = (line.label == Label::Highest).then_some("");
    html! {
        path.line.(line.class) d=(d) data-name=(line.name) data-unit=(axis.unit.as_str()) data-scale=(scale)
            data-low=(axis.low) data-high=(axis.high) data-highest=[highest] {}
    }
}

/// The names at the lines' right ends, from top to bottom, moved apart.
fn names(chart: &Chart<'_>) -> Markup {
    let end = |line: &Line<'_>| {
        let last = line.points.iter().rev().find(|point| !point.1.is_nan())?;
        Some(y_of(axis_of(chart, line), last.1))
    };
    let named = chart.lines.iter().filter(|line| line.label == Label::AtEnd);
    let mut ends: Vec<(f64, &Line<'_>)> = named.filter_map(|line| end(line).map(|y| (y, line))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted: Vec<f64> = ends.iter().map(|(y, _)| *y).collect();
    html! {
        @for (y, (_, line)) in apart(&wanted, NAME_HEIGHT, BOTTOM).into_iter().zip(&ends) {
            text.name.(line.class) x=(RIGHT + 7.0) y=(at(y + 4.0)) { (cut(line.name, NAME_CHARS_MAX)) }
        }
    }
}

/// Rising positions, each at least `gap` below the one before, pushed up from `bottom` where there is no room.
fn apart(wanted: &[f64], gap: f64, bottom: f64) -> Vec<f64> {
    let mut placed: Vec<f64> = Vec::with_capacity(wanted.len());
    for y in wanted {
        placed.push(placed.last().map_or(*y, |above| y.max(above + gap)));
    }
    let mut floor = bottom;
    for y in placed.iter_mut().rev() {
        *y = y.min(floor);
        floor = *y - gap;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::super::axis::Unit;
    use super::*;

    #[test]
    fn names_at_line_ends_are_moved_apart() {
        let cases: [(&[f64], &[f64]); 3] = [
            (&[10.0, 50.0], &[10.0, 50.0]),
            (&[10.0, 12.0, 14.0], &[10.0, 25.0, 40.0]),
            (&[190.0, 199.0, 200.0], &[170.0, 185.0, 200.0]),
        ];
        for (wanted, expected) in cases {
            assert_eq!(apart(wanted, 15.0, 200.0), expected);
        }
    }

    #[test]
    fn gaps_lift_the_pen_and_names_are_escaped() {
        let (x, left) = (Axis::clock(10.0), Axis::linear(2.0, Unit::Count));
        let points = [(0.0, 0.0), (5.0, 2.0), (6.0, f64::NAN), (10.0, 1.0)];
        let line = Line::named("<script>", "c0", &points);
        let svg = figure(&Chart {
            title: "<b>",
            x: &x,
            left: &left,
            left_name: "n",
            right: None,
            lines: vec![line],
            shaded: &[],
            levels: Vec::new(),
            legend: vec![("c0", "<i>".to_owned())],
            points_max: 600,
        })
        .into_string();
        assert!(svg.contains("d=\"M60.0,200.0 265.0,26.0M470.0,113.0 470.0,113.0\""), "{svg}");
        assert!(!svg.contains("<script>") && !svg.contains("<b>") && !svg.contains("<i>"), "{svg}");
    }
}
