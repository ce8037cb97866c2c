//! Cells of a prediction beside what was measured: throughput and mean latency, each with its error.

use narrows_model::prediction::{Estimate, Scored};
use narrows_model::units;

use crate::figures::ratio;
use crate::section::{Cell, Column, Figure};

/// Names of the two figures of a cell.
const PAIR: [&str; 2] = ["predicted", "measured"];

pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::pair("throughput", PAIR).short("rate"),
        Column::right("error"),
        Column::pair("mean latency", PAIR).short("mean"),
        Column::right("error"),
    ]
}

/// The cells of [`columns`]; `None` if nothing was measured.
pub(crate) fn cells(scored: &Scored) -> Option<[Cell; 4]> {
    let after = &scored.prediction.after;
    let measured = &scored.prediction.measured.as_ref()?.figures;
    Some([
        pair(after.rate, measured.rate, units::rate),
        error(after.rate, measured.rate),
        pair(after.mean_ns, measured.mean_ns, units::duration),
        error(after.mean_ns, measured.mean_ns),
    ])
}

/// A cell without small print.
pub(crate) fn in_brief(cell: Cell) -> Cell {
    let brief = |figure: Figure| Figure { small: String::new(), ..figure };
    match cell {
        Cell::One(figure) => Cell::One(brief(figure)),
        Cell::Pair(first, second) => Cell::Pair(brief(first), brief(second)),
    }
}

fn pair(predicted: Estimate, measured: f64, written: fn(f64) -> String) -> Cell {
    let interval = format!("{} to {}", written(predicted.low), written(predicted.high));
    Cell::Pair(Figure::new(written(predicted.value)).small(interval), Figure::new(written(measured)))
}

/// Predicted ÷ measured − 1, marked if the 90 % interval does not hold the measured figure.
fn error(predicted: Estimate, measured: f64) -> Cell {
    let mark = if predicted.holds(measured) { "" } else { " ✗" };
    Cell::from(format!("{}{mark}", ratio(predicted.error(measured))))
}
