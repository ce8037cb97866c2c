//! The table of scaled parameters: for each experiment what its conclusions are, then for each parameter what becomes of the
//! ratios and of the conclusions.

use narrows_model::sensitivity::{Examined, Point, PointFigure, ScaledParameter, Sensitivity};
use narrows_model::units;

use super::judged::{self, Difference, changed};

/// Meaning of the marks in cells.
pub(super) const MARKS: &str = "Ratios compare each variant with the first one, or with the one that `ratio_to` names, in the order of the variants. `*` marks a \
    fitted value, which was made to come out as published. Each experiment ran twice as it is: where the two ratios differ by \
    more than 5 %, both are given, and `↑` and `↓` mark a ratio that is more than 5 % above or below both. `>` stands between \
    variants that both of these runs set more than 10 % apart, `≈` between others; an order is lost where less than 5 % is left. \
    Several values of a parameter are those of the variants.";

/// Placeholder for missing measurements.
const NOTHING: &str = "–";
const SAME: &str = "same";

/// A row. Cells are without the change, lower and higher in the order of [`header`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The experiment, a parameter, or nothing below these.
    pub(super) subject: String,
    pub(super) what: String,
    pub(super) cells: [String; 3],
    pub(super) is_experiment: bool,
}

/// The columns.
pub(super) fn header(sensitivity: &Sensitivity) -> [String; 5] {
    let [lower, higher] = super::changes(sensitivity);
    ["parameter".to_owned(), String::new(), lower, "as it is".to_owned(), higher]
}

pub(super) fn rows(sensitivity: &Sensitivity) -> Vec<Row> {
    sensitivity.experiments.iter().flat_map(of_experiment).collect()
}

fn of_experiment(examined: &Examined) -> Vec<Row> {
    let Some(first) = examined.as_is.first() else {
        let cells = [NOTHING.to_owned(), "not measured".to_owned(), NOTHING.to_owned()];
        return vec![Row { subject: examined.experiment.clone(), what: String::new(), cells, is_experiment: true }];
    };
    let mut rows = conclusions(examined, first);
    rows.extend(examined.parameters.iter().flat_map(|parameter| of_parameter(examined, first, parameter)));
    if let Some(row) = rows.first_mut() {
        row.subject = examined.experiment.clone();
        row.is_experiment = true;
    }
    rows
}

/// The bottlenecks and the orders that the runs without a change show.
fn conclusions(examined: &Examined, first: &Point) -> Vec<Row> {
    let row = |what: String, cell: String| Row {
        subject: String::new(),
        what,
        cells: [String::new(), cell, String::new()],
        is_experiment: false,
    };
    let bottleneck = |variant: &str| judged::bottlenecks_of(examined, variant).join(" or ");
    let bottlenecks = first.variants.iter().map(|of| format!("{}: {}", of.variant, bottleneck(&of.variant)));
    let mut rows = vec![row("bottlenecks".to_owned(), bottlenecks.collect::<Vec<_>>().join("; "))];
    rows.extend(
        first.figures.iter().map(|figure| row(format!("order by {}", figure.name), order(examined, first, figure))),
    );
    rows
}

/// The variants from the highest value to the lowest.
fn order(examined: &Examined, first: &Point, figure: &PointFigure) -> String {
    let value = |at: &usize| figure.values[*at].unwrap_or(f64::NAN);
    let mut places: Vec<usize> = (0..first.variants.len()).filter(|at| figure.values.get(*at).is_some()).collect();
    places.sort_by(|a, b| value(b).total_cmp(&value(a)));
    let mut out = String::new();
    for (n, at) in places.iter().enumerate() {
        let is_above = n > 0 && judged::is_above(examined, &figure.name, places[n - 1], *at);
        out += match (n, is_above) {
            (0, _) => "",
            (_, true) => " > ",
            (_, false) => " ≈ ",
        };
        out += &first.variants[*at].variant;
    }
    out
}

fn of_parameter(examined: &Examined, first: &Point, parameter: &ScaledParameter) -> Vec<Row> {
    let sides = [&parameter.lower, &parameter.higher];
    let points = sides.map(|side| side.point.as_ref());
    let changes = points.map(|point| changed(examined, point?));
    let row = |what: &str, [lower, higher]: [String; 2], as_is: String| Row {
        subject: String::new(),
        what: what.to_owned(),
        cells: [lower, as_is, higher],
        is_experiment: false,
    };
    let mut rows = vec![row("value", sides.map(|side| side.value.clone()), parameter.value.clone())];
    for figure in &first.figures {
        let cells =
            points.map(|point| point.map_or_else(|| NOTHING.to_owned(), |point| moved(examined, figure, point)));
        rows.push(row(&figure.name, cells, as_is(examined, figure)));
    }
    let words = |of: fn(&Difference) -> String| {
        [0, 1].map(|side| changes[side].as_ref().map_or_else(|| NOTHING.to_owned(), of))
    };
    rows.push(row("order", words(order_now), String::new()));
    rows.push(row("bottlenecks", words(bottlenecks_now), String::new()));
    rows[0].subject.clone_from(&parameter.name);
    rows
}

/// The ratios of a figure in the runs without a change.
fn as_is(examined: &Examined, figure: &PointFigure) -> String {
    ratios(figure, |at| {
        let (least, largest) = judged::as_is(examined, &figure.name, at)?;
        let range = if judged::are_near(least, largest) {
            figure.ratio_to_base(at).map(units::three)?
        } else {
            format!("{}–{}", units::three(least), units::three(largest))
        };
        let mark = if figure.fitted.get(at).copied().unwrap_or_default() { "*" } else { "" };
        Some(format!("×{range}{mark}"))
    })
}

/// The ratios of a figure at a point.
fn moved(examined: &Examined, figure: &PointFigure, point: &Point) -> String {
    let now = point.figure(&figure.name);
    ratios(figure, |at| {
        let ratio = now?.ratio_to_base(at)?;
        let mark = judged::as_is(examined, &figure.name, at)
            .map_or("", |(least, largest)| judged::moved(ratio, least, largest));
        Some(format!("×{}{mark}", units::three(ratio)))
    })
}

/// One for each variant but the first.
fn ratios(figure: &PointFigure, of: impl Fn(usize) -> Option<String>) -> String {
    let all = (1..figure.values.len()).map(|at| of(at).unwrap_or_else(|| NOTHING.to_owned()));
    all.collect::<Vec<_>>().join(" ")
}

fn order_now(changed: &Difference) -> String {
    if changed.order.is_empty() { SAME.to_owned() } else { changed.order.join("; ") }
}

fn bottlenecks_now(changed: &Difference) -> String {
    let other = |[variant, _, now]: &[String; 3]| format!("{variant}: {now}");
    let all: Vec<String> = changed.bottlenecks.iter().map(other).collect();
    if all.is_empty() { SAME.to_owned() } else { all.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::sensitivity;
    use super::*;

    fn written(sensitivity: &Sensitivity) -> String {
        let cells = |row: &Row| [&row.subject, &row.what].into_iter().chain(&row.cells).cloned().collect::<Vec<_>>();
        let line = |row: &Row| format!("{}\n", cells(row).join(" | ").replace("|  |", "| · |").trim());
        rows(sensitivity).iter().map(line).collect()
    }

    #[test]
    fn an_experiment_has_its_conclusions_and_what_becomes_of_them() {
        insta::assert_snapshot!(written(&sensitivity()), @r"
        shop | bottlenecks | · | first: throttling at store; second: throttling at store; third: throttling at store |
        | order by throughput | · | third > second > first |
        store_delay_ms | value | 20 | 25 | 30
        | throughput | ×1.00↓ ×1.77↓ | ×1.30* ×2.30 | ×1.35 ×3.00↑
        | order | throughput: second no longer above first | · | same
        | bottlenecks | same | · | second: cpu-saturation at shop
        ");
    }

    #[test]
    fn a_run_that_is_missing_has_no_cells() {
        let mut sensitivity = sensitivity();
        sensitivity.experiments[0].parameters[0].higher.point = None;
        assert!(written(&sensitivity).contains("\n| order | throughput: second no longer above first | · | –\n"));
        sensitivity.experiments[0].as_is.clear();
        assert_eq!(written(&sensitivity), "shop | · | – | not measured | –\n");
    }
}
