//! CPU and memory that each variant used, service by service, with their sidecars apart, and the replicas of services that have
//! several.

use narrows_model::comparison::{Outcome, ServiceSummary, SidecarSummary, VariantSummary};
use narrows_model::units;

use super::Context;
use crate::html::Palette;
use crate::section::{Bar, BarPart, Bars, Block, Column, Figure, Line, Medium, Phrase, Row, Section, Table};
use crate::used::{Kind, Readings, ReplicaGroup, Row as UseRow, ServiceUse, replicated, rows, sidecars, traversal};

/// With more variants the columns have no room in a terminal, which then shows the busiest service of each.
const TERMINAL_VARIANTS_MAX: usize = 6;
/// Variants at most.
const VARIANTS_MAX: usize = 24;
/// Services and sidecars with a row of their own at most.
const SERVICES_MAX: usize = 60;
/// The same in the terminal.
const TERMINAL_MAX: usize = 24;
/// Replicas reported one by one; of more, the least and the most.
const REPLICAS_MAX: usize = 8;
/// Maximum number of replicated services, each in one variant.
const REPLICATED_MAX: usize = 50;

/// The tables; without blocks if nothing was sampled.
pub(super) fn section(context: &Context<'_>) -> Section {
    let outcome = context.outcome;
    let services_max = if context.medium == Medium::Terminal { TERMINAL_MAX } else { SERVICES_MAX };
    let rows = rows(outcome, services_max);
    if rows.is_empty() {
        return Section::default();
    }
    if context.medium == Medium::Terminal && outcome.comparison.variants.len() > TERMINAL_VARIANTS_MAX {
        return Section::untitled(
            busiest(&outcome.comparison.variants).map(|line| Block::Lines(vec![line])).into_iter().collect(),
        );
    }
    let mut blocks = Vec::new();
    if context.medium == Medium::Page {
        blocks.extend(bars(outcome, &rows, &context.palette).map(Block::Bars));
    }
    blocks.push(Block::Table(cpu(outcome, &rows)));
    blocks.extend(memory(outcome, &rows).map(Block::Table));
    let note = "All replicas of a service together, while the load counted; the maximum on hover. Memory is the proportional \
                set size (PSS), in which pages that processes share count once; where it was not sampled, the resident set \
                size (RSS).";
    blocks.push(Block::Only(Medium::Page, vec![Block::Note(Phrase::from(note))]));
    blocks.extend(replicas(outcome).map(Block::Table));
    Section::new("services", "What it used", blocks)
}

/// CPU for each request, a bar for each variant; `None` with a single service, about which the table shows all.
fn bars(outcome: &Outcome, rows: &[UseRow], palette: &Palette) -> Option<Bars> {
    let services: Vec<&UseRow> = rows.iter().filter(|row| row.kind == Kind::Service).collect();
    let variants = outcome.comparison.variants.iter().take(VARIANTS_MAX).enumerate();
    let sum = |at: usize| services.iter().map(|row| per_request(row, at)).sum::<f64>();
    let longest = variants.clone().map(|(at, _)| sum(at)).fold(0.0, f64::max);
    if services.len() < 2 || longest <= 0.0 {
        return None;
    }
    let bar = |at: usize, variant: &VariantSummary| {
        let part = |row: &&UseRow| {
            let seconds = per_request(row, at);
            let text = units::duration(seconds * 1e9);
            BarPart {
                name: row.name.clone(),
                colour: palette.class(&row.name).to_owned(),
                length: seconds / longest,
                share: seconds / sum(at),
                label: text.clone(),
                detail: text,
            }
        };
        let used = services.iter().filter(|row| per_request(row, at) > 0.0);
        Bar { name: variant.variant.clone(), total: units::duration(sum(at) * 1e9), parts: used.map(part).collect() }
    };
    let legend = services.iter().map(|row| (palette.class(&row.name).to_owned(), row.name.clone()));
    Some(Bars {
        title: Phrase::from("CPU for each request"),
        rows: variants.map(|(at, variant)| bar(at, variant)).collect(),
        legend: legend.collect(),
    })
}

/// CPU of a service for each request in one variant, core-seconds; 0 if it is not known.
fn per_request(row: &UseRow, at: usize) -> f64 {
    row.variants[at].as_ref().and_then(|used| used.per_request).unwrap_or(0.0)
}

fn cpu(outcome: &Outcome, rows: &[UseRow]) -> Table {
    let largest = largest(rows, |used| used.per_request.unwrap_or(0.0));
    let figure = |used: &ServiceUse, kind: Kind| {
        let (text, value) = match used.per_request {
            Some(seconds) => (units::duration(seconds * 1e9), seconds),
            None => (String::new(), 0.0),
        };
        let figure = Figure::new(text).small(format!("{:.2}", used.cores));
        with_scale(figure, kind, value, largest, used.cores_max.map(|cores| format!("at most {cores:.2} cores")))
    };
    let mut table: Vec<Row> = rows.iter().map(|row| cells(row, &figure)).collect();
    let sidecars = sidecars(outcome);
    if !sidecars.is_empty() {
        let figures = sidecars.into_iter().take(VARIANTS_MAX).map(|one| one.map_or_else(Figure::unknown, sidecar));
        table.push(Row::new(std::iter::once(Figure::new("each sidecar passed")).chain(figures)));
    }
    Table::new(columns(outcome, "CPU per request (mean cores)", "CPU/req (cores)"), table)
}

/// CPU of each sidecar that a request passes.
fn sidecar(one: &SidecarSummary) -> Figure {
    let hover = format!("{} of all CPU", units::percent(one.cpu_share));
    Figure { hover, ..Figure::new(traversal(one)) }
}

/// The table; `None` if no memory was sampled.
fn memory(outcome: &Outcome, rows: &[UseRow]) -> Option<Table> {
    let largest = largest(rows, |used| used.memory);
    if largest <= 0.0 {
        return None;
    }
    let figure = |used: &ServiceUse, kind: Kind| {
        let hover = used.memory_max.map(|most| format!("at most {}", units::bytes(most)));
        with_scale(Figure::new(units::bytes(used.memory)), kind, used.memory, largest, hover)
    };
    let table = rows.iter().map(|row| cells(row, &figure)).collect();
    Some(Table::new(columns(outcome, "memory", "memory"), table))
}

/// A bar and a maximum for a service; a sum has no place on the scale of its parts.
fn with_scale(figure: Figure, kind: Kind, value: f64, largest: f64, hover: Option<String>) -> Figure {
    let figure = if kind == Kind::Service { figure.bar(value, largest) } else { figure };
    Figure { hover: hover.unwrap_or_default(), ..figure }
}

fn largest(rows: &[UseRow], of: fn(&ServiceUse) -> f64) -> f64 {
    let services = rows.iter().filter(|row| row.kind == Kind::Service);
    services.flat_map(|row| row.variants.iter().flatten()).map(of).fold(0.0, f64::max)
}

fn columns(outcome: &Outcome, first: &str, short: &str) -> Vec<Column> {
    let variants = outcome.comparison.variants.iter().take(VARIANTS_MAX);
    let variants = variants.map(|variant| Column::right(&variant.variant));
    std::iter::once(Column::left(first).short(short)).chain(variants).collect()
}

fn cells(row: &UseRow, figure: &dyn Fn(&ServiceUse, Kind) -> Figure) -> Row {
    let figures = row.variants.iter().take(VARIANTS_MAX);
    let figures = figures.map(|used| used.as_ref().map_or_else(Figure::unknown, |used| figure(used, row.kind)));
    Row::new(std::iter::once(Figure::new(&row.name)).chain(figures))
}

/// The replicas of each service that has several; `None` without such a service.
fn replicas(outcome: &Outcome) -> Option<Table> {
    let all = replicated(outcome);
    let row = |one: &ReplicaGroup<'_>| {
        let rates = one.rates().map_or_else(|| "–".to_owned(), |rates| together(&rates));
        Row::new([one.service.to_owned(), one.variant.to_owned(), rates, together(&one.cpu()), together(&one.memory())])
    };
    let rows: Vec<Row> = all.iter().take(REPLICATED_MAX).map(row).collect();
    let columns = ["replicas of", "variant", "requests", "CPU", "memory"].map(Column::left).to_vec();
    (!rows.is_empty()).then(|| Table::new(columns, rows))
}

/// Values of the replicas, with the unit given once if it is the same: `31.2 30.9 31.0/s`.
fn together(readings: &Readings) -> String {
    let texts = readings.texts();
    let units = ["/s", " %", " KiB", " MiB", " GiB"];
    let unit = units.into_iter().find(|unit| texts.iter().all(|text| text.ends_with(unit))).unwrap_or("");
    let bare = |text: &str| text.strip_suffix(unit).unwrap_or(text).to_owned();
    match readings.range() {
        Some((least, most)) if texts.len() > REPLICAS_MAX => {
            format!("{} to {}{unit} ({})", bare(&least), bare(&most), texts.len())
        }
        _ => texts.iter().map(|text| bare(text)).collect::<Vec<_>>().join(" ") + unit,
    }
}

/// The service of each variant that used most CPU, mean and most cores; named once where it is the same.
fn busiest(variants: &[VariantSummary]) -> Option<Line> {
    let of_variant = |variant: &VariantSummary| {
        let by_cpu = |a: &&ServiceSummary, b: &&ServiceSummary| a.cpu_mean.total_cmp(&b.cpu_mean);
        variant.services.iter().max_by(by_cpu).map(|service| (variant.variant.clone(), service.clone()))
    };
    let busiest: Vec<(String, ServiceSummary)> = variants.iter().filter_map(of_variant).collect();
    let (_, first) = busiest.first()?;
    let is_one = busiest.iter().all(|(_, service)| service.service == first.service);
    let parts = busiest.iter().map(|(variant, service)| {
        let name = if is_one { variant.clone() } else { format!("{variant} {}", service.service) };
        format!("{name} {:.2} ({:.2})", service.cpu_mean, service.cpu_max)
    });
    let lead = if is_one { format!("busiest is {}", first.service) } else { "busiest services".to_owned() };
    let text = format!("{lead}, mean (and most) cores: {}", parts.collect::<Vec<_>>().join(", "));
    Some(Line::new("CPU", "", text))
}

#[cfg(test)]
mod tests {
    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture::{self, drones};
    use crate::used::tests::outcome;

    #[test]
    fn services_sidecars_and_replicas_each_have_their_rows() {
        insta::assert_snapshot!(in_terminal(section, &outcome(), 100), @r"
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

        replicas of  variant        requests          CPU         memory
        ────────────────────────────────────────────────────────────────────────────
        gateway      partition-key  20.0 20.5 19.0/s  70 70 70 %  12.0 12.0 12.0 MiB
        ");
    }

    #[test]
    fn a_page_draws_the_services_as_parts_of_a_bar() {
        let page = in_page(section, &drones::outcome());
        assert_eq!(page.matches("class=\"stack\"").count(), 4);
        assert!(page.contains("title=\"at most 1.84 cores\"") && page.contains("all together"), "{page}");
        assert_eq!(in_page(section, &fixture::outcome()), "");
    }

    #[test]
    fn many_replicas_are_a_range_and_many_variants_a_line() {
        let readings = |replicas: u32| Readings {
            values: (0..replicas).map(|n| 1_020.0 - f64::from(n) * 20.0).collect(),
            text: units::rate,
        };
        assert_eq!(together(&readings(12)), "800 to 1,020/s (12)");
        assert_eq!(together(&readings(2)), "1,020 1,000/s");
        let mut many = outcome();
        let again = many.comparison.variants[0].clone();
        many.comparison.variants.extend(std::iter::repeat_n(again, 4));
        let text = in_terminal(section, &many, 100);
        assert!(
            text.starts_with("CPU         busiest is drone-scheduler, mean (and most) cores: baseline 0.45"),
            "{text}"
        );
    }

    #[test]
    fn the_busiest_services_are_named_where_they_differ() {
        let mut variants = drones::outcome().comparison.variants;
        variants.truncate(2);
        variants[1].services[0].cpu_mean = 0.9;
        let line = busiest(&variants).unwrap();
        assert!(line.text.contains("baseline drone-scheduler 0.45 (0.85), more-throughput gateway 0.90"), "{line:?}");
    }
}
