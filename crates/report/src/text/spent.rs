//! Spending of the time of the busiest operations, a line for each variant; the rest is in the page and the JSON.

use narrows_model::comparison::Outcome;
use narrows_model::units;

use super::paint::{Paint, clean, hanging, wrap};
use crate::spent::{Spent, name, spent};

/// The most operations reported.
const OPERATIONS_MAX: usize = 3;
/// The most parts of a request reported.
const PARTS_MAX: usize = 4;
/// The least share that is reported.
const SHARE_MIN: f64 = 0.005;

/// Empty when nothing was traced.
pub(super) fn all(outcome: &Outcome, paint: Paint, width: usize) -> String {
    spent(outcome).iter().take(OPERATIONS_MAX).map(|spent| one(spent, paint, width)).collect::<Vec<_>>().join("\n")
}

fn one(spent: &Spent<'_>, paint: Paint, width: usize) -> String {
    let title = clean(&format!("{} {}, what its time is spent on", spent.service, spent.operation));
    let mut out: String = wrap(&title, width).iter().map(|line| format!("{}\n", paint.bold(line))).collect();
    for (variant, breakdown) in &spent.variants {
        let parts = breakdown.parts.iter().take(PARTS_MAX).filter(|part| part.share >= SHARE_MIN);
        let parts = parts.map(|part| format!("{} {}", name(&part.category), units::percent(part.share)));
        let parts = parts.collect::<Vec<_>>().join(", ");
        let text = format!("{variant} {}: {parts}", units::duration(breakdown.mean_ns));
        out += &hanging("time", &paint.dim("time"), &text, 0, width);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Color;
    use super::*;
    use crate::fixture;

    #[test]
    fn the_largest_parts_of_each_operation() {
        let mut outcome = crate::spent::tests::outcome();
        outcome.breakdowns.truncate(2);
        insta::assert_snapshot!(all(&outcome, Paint(Color::Never), 90), @r"
        gateway GET /api/invoices, what its time is spent on
        time        baseline 652 ms: docstore 49 %, waiting to retry docstore 41 %,
                    drone-scheduler 5.4 %, on CPU 1.7 %
        time        more-throughput 457 ms: docstore 77 %, drone-scheduler 18 %, on CPU 2.4 %,
                    waiting for a connection 1.8 %

        drone-scheduler GET /api/dronedeliveries/utilization, what its time is spent on
        time        baseline 625 ms: docstore 51 %, waiting to retry docstore 43 %, waiting for a
                    lock 5.6 %
        time        more-throughput 430 ms: docstore 81 %, waiting for a lock 19 %
        ");
        assert_eq!(all(&fixture::outcome(), Paint(Color::Never), 90), "");
    }
}
