//! Published and measured figures as pairs of bars, one pair for each variant. Published bars are scaled to the largest
//! published value and measured ones to the largest measured one: the values are of different machines, and what is to be
//! compared is the shape.

use maud::{Markup, html};
use narrows_model::published::{Beside, BesideCell};

use crate::measures;

/// With fewer variants there is no shape.
const VARIANTS_MIN: usize = 3;

/// The bars of a row; `None` if fewer than three variants have both values, or if the values cannot be compared by length.
pub(crate) fn figure(row: &Beside) -> Option<Markup> {
    let both = |cell: &&BesideCell| cell.published.is_some() && cell.measured.is_some();
    let cells: Vec<&BesideCell> = row.cells.iter().filter(both).collect();
    let largest = |of: fn(&BesideCell) -> Option<f64>| cells.iter().filter_map(|cell| of(cell)).fold(0.0, f64::max);
    let (published, measured) = (largest(|cell| cell.published), largest(|cell| cell.measured));
    if cells.len() < VARIANTS_MIN || !measures::has_ratio(row.measure) || published <= 0.0 || measured <= 0.0 {
        return None;
    }
    Some(html! {
        figure.pairs {
            figcaption {
                (measures::name(row)) ": " i { "published" } " and " b { "measured" } ", each as a share of its largest"
            }
            div.scroll { table { tbody { @for cell in cells {
                tr {
                    th scope="row" { (cell.variant) }
                    td {
                        span.lengths {
                            i style=(width(cell.published, published)) {}
                            b style=(width(cell.measured, measured)) {}
                        }
                    }
                    td.n { i { (measures::value(row.measure, cell.published)) } }
                    td.n { b { (measures::value(row.measure, cell.measured)) } }
                }
            } } } }
        }
    })
}

/// Width of a bar as a share of that of the largest value.
fn width(value: Option<f64>, largest: f64) -> String {
    format!("width:{:.1}%", 100.0 * value.unwrap_or(0.0) / largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::drones;

    #[test]
    fn each_kind_is_scaled_to_its_own_largest_value() {
        let outcome = drones::outcome();
        let mut row = outcome.beside[0].clone();
        for (cell, (published, measured)) in row.cells.iter_mut().zip([(10.0, 300.0), (20.0, 400.0), (40.0, 800.0)]) {
            (cell.published, cell.measured) = (Some(published), Some(measured));
        }
        row.cells.truncate(3);
        let html = figure(&row).unwrap().into_string();
        for widths in
            ["<i style=\"width:25.0%\"></i><b style=\"width:37.5%\"></b>", "width:100.0%\"></i><b style=\"width:100.0%"]
        {
            assert!(html.contains(widths), "{html}");
        }
        row.cells[1].published = None;
        assert!(figure(&row).is_none(), "two variants have no shape");
    }
}
