//! Published and measured figures as pairs of bars, one pair for each variant. Published bars are scaled to the largest
//! published value and measured ones to the largest measured one: the values are of different machines, and what is to be
//! compared is the shape.

use narrows_model::published::{Beside, BesideCell};

use super::escape::Esc;
use crate::measures;

/// With fewer variants there is no shape.
const VARIANTS_MIN: usize = 3;

/// The bars of a row; empty if fewer than three variants have both values, or if the values cannot be compared by length.
pub(crate) fn figure(row: &Beside) -> String {
    let both = |cell: &&BesideCell| cell.published.is_some() && cell.measured.is_some();
    let cells: Vec<&BesideCell> = row.cells.iter().filter(both).collect();
    let largest = |of: fn(&BesideCell) -> Option<f64>| cells.iter().filter_map(|cell| of(cell)).fold(0.0, f64::max);
    let (published, measured) = (largest(|cell| cell.published), largest(|cell| cell.measured));
    if cells.len() < VARIANTS_MIN || !measures::has_ratio(row.measure) || published <= 0.0 || measured <= 0.0 {
        return String::new();
    }
    let pair = |cell: &&BesideCell| {
        let bar = |tag: char, value: Option<f64>, largest: f64| {
            let share = 100.0 * value.unwrap_or(0.0) / largest;
            format!("<{tag} style=\"width:{share:.1}%\"></{tag}>")
        };
        format!(
            "<tr><th scope=\"row\">{}</th><td><span class=\"lengths\">{}{}</span></td><td class=\"n\"><i>{}</i></td>\
             <td class=\"n\"><b>{}</b></td></tr>",
            Esc(&cell.variant),
            bar('i', cell.published, published),
            bar('b', cell.measured, measured),
            measures::value(row.measure, cell.published),
            measures::value(row.measure, cell.measured)
        )
    };
    let pairs: String = cells.iter().map(pair).collect();
    format!(
        "<figure class=\"pairs\"><figcaption>{}: <i>published</i> and <b>measured</b>, each as a share of its largest\
         </figcaption><div class=\"scroll\"><table><tbody>{pairs}</tbody></table></div></figure>",
        Esc(&measures::name(row))
    )
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
        let html = figure(&row);
        for widths in
            ["<i style=\"width:25.0%\"></i><b style=\"width:37.5%\"></b>", "width:100.0%\"></i><b style=\"width:100.0%"]
        {
            assert!(html.contains(widths), "{html}");
        }
        row.cells[1].published = None;
        assert_eq!(figure(&row), "", "two variants have no shape");
    }
}
