//! The tables: conclusions with the runs that come to them, and what becomes of ratios with each scaled parameter.

use narrows_model::sensitivity::{Examined, Point, PointFigure, ScaledParameter, Sensitivity};
use narrows_model::units;

use super::claims::{Claim, Tally, claims, kept};
use super::noise::{Range, is_noise};

/// Meaning of the words and marks in cells.
pub(super) const MARKS: &str = "No parameter is judged by a conclusion that an unchanged run does not come to. Ratios compare each \
    variant with the first one, or with the one that `ratio_to` names, in the order of the variants. `*` marks a fitted value, \
    which was made to come out as published. Where the ratios of unchanged runs differ by more than 5 %, the least and the \
    largest are given. `↑` and `↓` mark a ratio that is further outside this range than the range is wide. A parameter is noise \
    if no ratio differs more between its lower and its higher value than between unchanged runs. Several values of a parameter \
    are those of the variants.";

/// Placeholder for missing measurements.
const NOTHING: &str = "–";

/// A row of a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// In the order of the table's header.
    pub(super) cells: [String; 5],
    /// True for the first row of an experiment.
    pub(super) is_experiment: bool,
}

/// The columns of [`conclusions`].
pub(super) fn header_of_conclusions(sensitivity: &Sensitivity) -> [String; 5] {
    let scaled = format!("{} lower or higher", units::percent(sensitivity.change));
    ["experiment", "conclusion", "unchanged", &scaled, "not with"].map(str::to_owned)
}

/// A row for each conclusion, with the runs that come to it.
pub(super) fn conclusions(sensitivity: &Sensitivity) -> Vec<Row> {
    let changes = super::changes(sensitivity);
    sensitivity.experiments.iter().flat_map(|examined| conclusions_of(examined, &changes)).collect()
}

fn conclusions_of(examined: &Examined, changes: &[String; 2]) -> Vec<Row> {
    let row = |(n, claim): (usize, Claim)| {
        let experiment = if n == 0 { examined.experiment.clone() } else { String::new() };
        let (unchanged, scaled) = (tally(claim.unchanged), tally(claim.scaled));
        let cells = [experiment, claim.text, unchanged, scaled, claim.lost.join("; ")];
        Row { cells, is_experiment: n == 0 }
    };
    claims(examined, changes).into_iter().enumerate().map(row).collect()
}

/// `3 of 3`.
fn tally(tally: Tally) -> String {
    if tally.all == 0 { NOTHING.to_owned() } else { format!("{} of {}", tally.come_back, tally.all) }
}

/// The columns of [`ratios`].
pub(super) fn header_of_ratios(sensitivity: &Sensitivity) -> [String; 5] {
    let [lower, higher] = super::changes(sensitivity);
    ["parameter", "", &lower, "unchanged", &higher].map(str::to_owned)
}

/// For each experiment and each of its parameters, the conclusions that are kept and the ratios of all figures.
pub(super) fn ratios(sensitivity: &Sensitivity) -> Vec<Row> {
    let changes = super::changes(sensitivity);
    sensitivity.experiments.iter().flat_map(|examined| of_experiment(examined, &changes)).collect()
}

fn of_experiment(examined: &Examined, changes: &[String; 2]) -> Vec<Row> {
    let Some(first) = examined.as_is.first() else {
        let cells = [&examined.experiment, "", NOTHING, "not measured", NOTHING].map(str::to_owned);
        return vec![Row { cells, is_experiment: true }];
    };
    let claims = claims(examined, changes);
    let stable = claims.iter().filter(|claim| claim.is_stable()).count();
    let stable = tally(Tally { come_back: stable, all: claims.len() });
    let cells = [&examined.experiment, "conclusions", "", &stable, ""].map(str::to_owned);
    let of_parameters =
        examined.parameters.iter().flat_map(|parameter| of_parameter(examined, first, parameter, &claims));
    std::iter::once(Row { cells, is_experiment: true }).chain(of_parameters).collect()
}

fn of_parameter(examined: &Examined, first: &Point, parameter: &ScaledParameter, claims: &[Claim]) -> Vec<Row> {
    let sides = [&parameter.lower, &parameter.higher];
    let row = |what: &str, [lower, higher]: [String; 2], unchanged: String| Row {
        cells: [String::new(), what.to_owned(), lower, unchanged, higher],
        is_experiment: false,
    };
    let of_points = |cell: &dyn Fn(&Point) -> String| {
        sides.map(|side| side.point.as_ref().map_or_else(|| NOTHING.to_owned(), cell))
    };
    let mut rows = vec![
        row("value", sides.map(|side| side.value.clone()), parameter.value.clone()),
        row("conclusions", of_points(&|point| tally(kept(examined, claims, point))), String::new()),
    ];
    for figure in &first.figures {
        let cells = of_points(&|point| scaled(examined, figure, point));
        rows.push(row(&figure.name, cells, unchanged(examined, figure)));
    }
    let noise = if is_noise(examined, parameter) { " (noise)" } else { "" };
    rows[0].cells[0] = format!("{}{noise}", parameter.name);
    rows
}

/// The ratios of a figure in the runs without a change.
fn unchanged(examined: &Examined, figure: &PointFigure) -> String {
    in_order(figure, |at| {
        let range = Range::of(examined, &figure.name, at)?;
        let shown = if range.is_narrow() {
            figure.ratio_to_base(at).map(units::three)?
        } else {
            format!("{}–{}", units::three(range.least), units::three(range.largest))
        };
        let mark = if figure.fitted.get(at).copied().unwrap_or_default() { "*" } else { "" };
        Some(format!("×{shown}{mark}"))
    })
}

/// The ratios of a figure at a point.
fn scaled(examined: &Examined, figure: &PointFigure, point: &Point) -> String {
    let now = point.figure(&figure.name);
    in_order(figure, |at| {
        let ratio = now?.ratio_to_base(at)?;
        let moved = Range::of(examined, &figure.name, at).map_or("", |range| range.moved(ratio));
        Some(format!("×{}{moved}", units::three(ratio)))
    })
}

/// One for each variant but the first.
fn in_order(figure: &PointFigure, of: impl Fn(usize) -> Option<String>) -> String {
    let all = (1..figure.values.len()).map(|at| of(at).unwrap_or_else(|| NOTHING.to_owned()));
    all.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::sensitivity;
    use super::*;

    fn written(rows: &[Row]) -> String {
        let line = |row: &Row| format!("{}\n", row.cells.join(" | ").replace("|  |", "| · |").trim());
        rows.iter().map(line).collect()
    }

    #[test]
    fn a_conclusion_has_the_runs_that_come_to_it() {
        insta::assert_snapshot!(written(&conclusions(&sensitivity())), @r"
        shop | The third is the fastest. | 2 of 2 | 2 of 2 |
        | The second gains a tenth. | 2 of 2 | 1 of 2 | store_delay_ms 20 (−20 %): throughput of second to first ×1.00, not at least ×1.10
        | The third is beyond 47/s. | 1 of 2 | – |
        ");
    }

    #[test]
    fn a_parameter_has_the_conclusions_that_are_kept_and_the_ratios() {
        insta::assert_snapshot!(written(&ratios(&sensitivity())), @r"
        shop | conclusions | · | 2 of 3 |
        store_delay_ms | value | 20 | 25 | 30
        | conclusions | 1 of 2 | · | 2 of 2
        | throughput | ×1.00↓ ×1.77↓ | ×1.30* ×2.30 | ×1.35 ×3.00↑
        ");
    }

    #[test]
    fn a_run_that_is_missing_has_no_cells() {
        let mut sensitivity = sensitivity();
        sensitivity.experiments[0].parameters[0].higher.point = None;
        assert!(written(&ratios(&sensitivity)).contains("\n| conclusions | 1 of 2 | · | –\n"));
        sensitivity.experiments[0].as_is.clear();
        assert_eq!(written(&ratios(&sensitivity)), "shop | · | – | not measured | –\n");
        assert!(conclusions(&sensitivity).is_empty());
    }

    #[test]
    fn noise_is_named_beside_its_parameter() {
        let mut sensitivity = sensitivity();
        let examined = &mut sensitivity.experiments[0];
        let parameter = &mut examined.parameters[0];
        (parameter.lower.point, parameter.higher.point) =
            (examined.as_is.first().cloned(), examined.as_is.last().cloned());
        assert!(written(&ratios(&sensitivity)).contains("\nstore_delay_ms (noise) | value | 20 | 25 | 30\n"));
    }
}
