//! Which figures agree with what was published. Machines differ, so a figure that has a ratio to another variant is
//! compared by that; what a request costs is compared as it is; counts grow with the length of a run and are not compared.

use narrows_model::published::{Beside, BesideCell};

use crate::measures;

/// Maximum deviation of a measured figure from the published one, as a share of it.
const TOLERANCE: f64 = 0.2;

/// Number of agreeing figures among those that could have come out otherwise.
#[derive(Default)]
pub(super) struct Agreement {
    /// Figures within 20 % of what was published.
    pub(super) within: usize,
    /// Name, published and measured value of each other figure.
    pub(super) outside: Vec<[String; 3]>,
}

impl Agreement {
    pub(super) fn new(rows: &[Beside]) -> Self {
        let mut agreement = Self::default();
        for row in rows {
            for (index, cell) in row.cells.iter().enumerate().filter(|(_, cell)| cell.standing.is_free()) {
                let Some((published, measured, shown)) = compared(row, index, cell) else { continue };
                if (measured / published - 1.0).abs() <= TOLERANCE {
                    agreement.within += 1;
                } else {
                    let name = format!("{} of {}", measures::name(row), cell.variant);
                    agreement.outside.push([name, shown(row, published), shown(row, measured)]);
                }
            }
        }
        agreement
    }
}

type Shown = fn(&Beside, f64) -> String;

/// The compared value of a cell, and its format.
fn compared(row: &Beside, index: usize, cell: &BesideCell) -> Option<(f64, f64, Shown)> {
    if row.measure.is_compared_as_it_is() {
        let (published, measured) = (cell.published?, cell.measured?);
        let shown: Shown = |row, value| measures::value(row.measure, Some(value));
        return (published > 0.0).then_some((published, measured, shown));
    }
    let base = measures::base(row, index).filter(|_| row.measure.is_compared_by_ratio())?;
    let ratio = |of: fn(&BesideCell) -> Option<f64>| {
        let ratio = of(cell)? / of(base)?;
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    };
    let shown: Shown = |_, ratio| format!("×{}", narrows_model::units::three(ratio));
    Some((ratio(|cell| cell.published)?, ratio(|cell| cell.measured)?, shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::published::Standing;

    use crate::fixture::drones;

    #[test]
    fn ratios_and_costs_are_compared_and_what_was_fitted_is_not() {
        let mut rows = drones::outcome().beside;
        let agreement = Agreement::new(&rows);
        let named = |agreement: &Agreement| agreement.outside.iter().map(|[name, ..]| name.clone()).collect::<Vec<_>>();
        assert_eq!(agreement.within, 9);
        assert_eq!(
            named(&agreement),
            [
                "throughput of more-throughput",
                "throughput of parallel",
                "throughput of partition-key",
                "mean duration of partition-key"
            ]
        );
        assert_eq!(agreement.outside[0][1..], ["×1.21".to_owned(), "×1.73".to_owned()]);
        rows[0].cells[1].standing = Standing::Fitted("delay".to_owned());
        assert_eq!(named(&Agreement::new(&rows)).len(), 3);
    }
}
