//! What each service used, as two small tables (CPU, memory) with a column for each variant, and its replicas.

use narrows_model::comparison::Outcome;
use narrows_model::units;

use super::paint::{Paint, clean};
use super::table::{Align, render};
use crate::used::{Kind, Readings, Replicated, Row, Used, replicated, rows, sidecars, traversal};

/// With more variants the columns have no room; the page and the JSON have them all.
pub(super) const VARIANTS_MAX: usize = 6;
/// The most services reported one by one.
const ROWS_MAX: usize = 24;
/// The most replicas reported one by one; of more, the least and the most.
const REPLICAS_MAX: usize = 8;

/// The tables; empty when nothing was sampled, and where there are too many variants.
pub(super) fn all(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let rows = rows(outcome);
    if rows.is_empty() || outcome.comparison.variants.len() > VARIANTS_MAX {
        return String::new();
    }
    let parts =
        [cpu(outcome, &rows, paint, width), memory(outcome, &rows, paint, width), replicas(outcome, paint, width)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn cpu(outcome: &Outcome, rows: &[Row], paint: Paint, width: usize) -> String {
    let cell = |used: &Used| match used.per_request {
        Some(seconds) => format!("{} ({:.2})", units::duration(seconds * 1e9), used.cores),
        None => format!("({:.2})", used.cores),
    };
    let mut table = cells(rows, cell);
    let sidecars = sidecars(outcome);
    if !sidecars.is_empty() {
        let mut row = vec!["each sidecar passed".to_owned()];
        row.extend(sidecars.into_iter().map(|one| one.map_or_else(dash, traversal)));
        table.push(row);
    }
    render(&header(outcome, "CPU/req (cores)"), &table, paint, width)
}

fn memory(outcome: &Outcome, rows: &[Row], paint: Paint, width: usize) -> String {
    if rows.iter().flat_map(|row| row.variants.iter().flatten()).all(|used| used.memory <= 0.0) {
        return String::new();
    }
    render(&header(outcome, "memory"), &cells(rows, |used| units::bytes(used.memory)), paint, width)
}

fn header(outcome: &Outcome, first: &str) -> Vec<(String, Align)> {
    let variants = outcome.comparison.variants.iter().map(|variant| (clean(&variant.variant), Align::Right));
    std::iter::once((first.to_owned(), Align::Left)).chain(variants).collect()
}

/// The rows as text, sums set apart by their place: the last rows that do not fit are left out, sums never.
fn cells(rows: &[Row], cell: impl Fn(&Used) -> String) -> Vec<Vec<String>> {
    let mut left = ROWS_MAX;
    let mut table = Vec::new();
    for row in rows {
        if row.kind == Kind::Service {
            if left == 0 {
                continue;
            }
            left -= 1;
        }
        let values = row.variants.iter().map(|used| used.as_ref().map_or_else(dash, &cell));
        table.push(std::iter::once(clean(&row.name)).chain(values).collect());
    }
    table
}

fn dash() -> String {
    "–".to_owned()
}

fn replicas(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let all = replicated(outcome);
    if all.is_empty() {
        return String::new();
    }
    let row = |one: &Replicated<'_>| {
        let rates = one.rates().map_or_else(dash, |rates| together(&rates));
        vec![clean(one.service), clean(one.variant), rates, together(&one.cpu())]
    };
    let header =
        [("replicas of", Align::Left), ("variant", Align::Left), ("requests", Align::Left), ("CPU", Align::Left)];
    let header = header.map(|(name, align)| (name.to_owned(), align));
    render(&header, &all.iter().map(row).collect::<Vec<_>>(), paint, width)
}

/// Values of the replicas, with the unit given once if it is the same: `31.2 30.9 31.0/s`.
fn together(readings: &Readings) -> String {
    let texts = readings.texts();
    let unit = ["/s", " %"].into_iter().find(|unit| texts.iter().all(|text| text.ends_with(unit))).unwrap_or("");
    let bare = |text: &str| text.strip_suffix(unit).unwrap_or(text).to_owned();
    match readings.range() {
        Some((least, most)) if texts.len() > REPLICAS_MAX => {
            format!("{} to {}{unit} ({})", bare(&least), bare(&most), texts.len())
        }
        _ => texts.iter().map(|text| bare(text)).collect::<Vec<_>>().join(" ") + unit,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Color;
    use super::*;
    use crate::used::tests::outcome;

    #[test]
    fn services_sidecars_and_replicas_each_have_their_rows() {
        insta::assert_snapshot!(all(&outcome(), Paint(Color::Never), 100), @r"
        CPU/req (cores)            baseline  more-throughput        parallel   partition-key
        ────────────────────────────────────────────────────────────────────────────────────
        gateway              7.69 ms (0.20)   4.44 ms (0.20)  2.70 ms (0.20)  2.02 ms (0.20)
        delivery             4.23 ms (0.11)   2.44 ms (0.11)  1.49 ms (0.11)  1.11 ms (0.11)
        package              1.54 ms (0.04)    889 µs (0.04)   541 µs (0.04)   404 µs (0.04)
        docstore             5.38 ms (0.14)   3.11 ms (0.14)  1.89 ms (0.14)  1.41 ms (0.14)
        drone-scheduler      17.3 ms (0.45)   13.3 ms (0.60)  11.1 ms (0.82)  9.80 ms (0.97)
        services together    36.2 ms (0.94)   24.2 ms (1.09)  17.7 ms (1.31)  14.7 ms (1.46)
        gateway.sidecar                   –                –               –  1.01 ms (0.10)
        delivery.sidecar                  –                –               –   505 µs (0.05)
        sidecars together                 –                –               –  1.52 ms (0.15)
        all together         36.2 ms (0.94)   24.2 ms (1.09)  17.7 ms (1.31)  16.3 ms (1.61)
        each sidecar passed               –                –               –      505 µs × 3

        memory             baseline  more-throughput  parallel  partition-key
        ─────────────────────────────────────────────────────────────────────
        gateway            46.0 MiB         46.0 MiB  46.0 MiB       46.0 MiB
        delivery           55.0 MiB         55.0 MiB  55.0 MiB       55.0 MiB
        package            64.0 MiB         64.0 MiB  64.0 MiB       64.0 MiB
        docstore           73.0 MiB         73.0 MiB  73.0 MiB       73.0 MiB
        drone-scheduler    82.0 MiB         82.0 MiB  82.0 MiB       82.0 MiB
        services together   320 MiB          320 MiB   320 MiB        320 MiB
        gateway.sidecar           –                –         –       5.00 MiB
        delivery.sidecar          –                –         –       5.00 MiB
        sidecars together         –                –         –       10.0 MiB
        all together        320 MiB          320 MiB   320 MiB        330 MiB

        replicas of  variant        requests          CPU
        ────────────────────────────────────────────────────────
        gateway      partition-key  20.0 20.5 19.0/s  70 70 70 %
        ");
    }

    #[test]
    fn many_replicas_are_a_range_and_many_variants_no_table() {
        let readings = |replicas: u32| Readings {
            values: (0..replicas).map(|n| 1_020.0 - f64::from(n) * 20.0).collect(),
            text: units::rate,
        };
        assert_eq!(together(&readings(12)), "800 to 1,020/s (12)");
        assert_eq!(together(&readings(2)), "1,020 1,000/s");
        let mut many = outcome();
        let again = many.comparison.variants[0].clone();
        many.comparison.variants.extend(std::iter::repeat_n(again, 4));
        assert_eq!(all(&many, Paint(Color::Never), 100), "");
    }
}
