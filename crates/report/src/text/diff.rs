//! Two variants beside each other as text: services, operations, their calls, findings, what may be doubted, the sentence.
//!
//! Items that are the same on both sides are counted, not listed.

use narrows_diagnose::words::InWords;
use narrows_model::diff::{
    CallDiff, Diff, Fate, FindingDiff, LogDiff, OperationDiff, RequestsDiff, ServiceDiff, ServiceRole,
};
use narrows_model::finding::Finding;
use narrows_model::units;

use super::paint::Paint;
use super::{Style, WIDTH_MIN, sections};
use crate::checked::caveats;
use crate::figures::{change, interval, number, plural};
use crate::section::{Block, Column as TableColumn, Line, Phrase, Row, Section, Table, Tone};

/// The text of `narrows diff`. Ends with a line feed.
pub fn diff(diff: &Diff, style: Style) -> String {
    let title = format!("{} → {}", diff.before, diff.after);
    let sentence = Block::Paragraph(Phrase::from(&diff.sentence), Tone::Strong);
    let all = [
        Section::untitled(vec![Block::Heading(Phrase::from(title))]),
        Section::untitled(requests(diff).into_iter().collect()),
        Section::untitled(services(&diff.services)),
        Section::untitled(messages(&diff.services)),
        Section::untitled(operations(&diff.operations)),
        Section::untitled(calls(&diff.operations)),
        Section::untitled(findings(&diff.findings)),
        caveats(&diff.caveats),
        Section::untitled(vec![sentence]),
    ];
    sections(&all, Paint(style.color), style.width.max(WIDTH_MIN))
}

fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Appeared => "appeared",
        Fate::Vanished => "vanished",
        Fate::Changed => "changed",
        Fate::Same => "same",
    }
}

/// Number of items left out because they are the same; `None` without such items.
fn unchanged(count: usize, one: &str, many: &str) -> Option<Block> {
    (count > 0).then(|| Block::Note(Phrase::from(format!("{} the same", plural(count, one, many)))))
}

/// The compared requests that begin traces, as a sentence.
fn requests(diff: &Diff) -> Option<Block> {
    let RequestsDiff { count, latency_ns } = diff.requests?;
    let traced = |count: f64| units::count(count.round() as u64);
    let text = format!(
        "Requests that begin traces take {} on average ({} and {} compared).",
        pair(latency_ns, units::duration),
        traced(count.0),
        traced(count.1)
    );
    Some(Block::Paragraph(Phrase::from(text), Tone::Plain))
}

fn services(services: &[ServiceDiff]) -> Vec<Block> {
    let columns: Vec<Column> =
        COLUMNS.into_iter().filter(|column| services.iter().any(|one| (column.has)(one))).collect();
    let header: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let is_shown = |service: &&ServiceDiff| service.role != ServiceRole::Unchanged || !service.logs.is_empty();
    let shown: Vec<&ServiceDiff> = services.iter().filter(is_shown).collect();
    let rows: Vec<Row> =
        shown.iter().map(|service| Row::new(columns.iter().map(|column| (column.cell)(service)))).collect();
    let same = unchanged(services.len() - rows.len(), "service", "services");
    let examples = shown.iter().filter_map(|service| Some((&service.service, service.example.as_ref()?)));
    let examples =
        examples.map(|(service, trace)| Phrase::from(format!("Example of {service}: trace {trace}."))).map(Block::Note);
    table(&header, rows).into_iter().chain(same).chain(examples).collect()
}

/// A column of the table of services, which is left out when no service has it.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    has: fn(&ServiceDiff) -> bool,
    cell: fn(&ServiceDiff) -> String,
}

const COLUMNS: [Column; 16] = [
    Column { name: "service", has: |_| true, cell: |one| one.service.clone() },
    Column { name: "", has: |_| true, cell: |one| role(one.role).to_owned() },
    Column {
        name: "of each request",
        has: |one| one.requests.is_none(),
        cell: |one| pair((one.before_ns, one.after_ns), units::duration),
    },
    Column {
        name: "response",
        has: |one| one.requests.is_some(),
        cell: |one| pair((one.before_ns, one.after_ns), units::duration),
    },
    Column {
        name: "in front of it",
        has: |one| one.outside_ns.is_some(),
        cell: |one| one.outside_ns.map_or_else(absent, |outside_ns| pair(outside_ns, units::duration)),
    },
    Column {
        name: "each call",
        has: is_slower_in_few_calls,
        cell: |one| one.call_ns.map_or_else(absent, |call_ns| pair(call_ns, units::duration)),
    },
    Column {
        name: "reached by",
        has: is_slower_in_few_calls,
        cell: |one| one.reached.map_or_else(absent, |reached| pair(reached, units::percent)),
    },
    Column { name: "change", has: |_| true, cell: change_of },
    Column {
        name: "share",
        has: |_| true,
        cell: |one| one.share.filter(|_| is_origin(one)).map_or_else(absent, units::percent),
    },
    Column {
        name: "confidence",
        has: |_| true,
        cell: |one| if is_origin(one) || is_known_by_logs(one) { one.confidence.as_str().to_owned() } else { absent() },
    },
    Column { name: "errors", has: |one| one.errors != (0.0, 0.0), cell: |one| pair(one.errors, units::percent) },
    Column {
        name: "requests",
        has: |one| one.requests.is_some(),
        cell: |one| one.requests.map_or_else(absent, |requests| pair(requests, units::rate)),
    },
    Column {
        name: "CPU of each",
        has: |one| one.cpu.is_some(),
        cell: |one| one.cpu.map_or_else(absent, |cpu| pair(cpu, units::duration)),
    },
    Column {
        name: "memory",
        has: |one| one.role == ServiceRole::Heavier && one.memory.is_some(),
        cell: |one| one.memory.map_or_else(absent, |memory| pair(memory, units::bytes)),
    },
    Column {
        name: "CPU limit",
        has: |one| one.cpu_limit.is_some(),
        cell: |one| one.cpu_limit.map_or_else(absent, |limit| pair(limit, number)),
    },
    Column {
        name: "calls",
        has: |one| one.calls.is_some(),
        cell: |one| {
            let of = |(callee, old, new): &(String, f64, f64)| format!("{callee} {} → {}", number(*old), number(*new));
            one.calls.as_ref().map_or_else(String::new, of)
        },
    },
];

/// True if few requests reach a service and each of its calls takes longer.
fn is_slower_in_few_calls(service: &ServiceDiff) -> bool {
    service.role == ServiceRole::Slower && service.slower_rare_calls().is_some()
}

fn absent() -> String {
    "–".to_owned()
}

/// Both sides, or one where they read the same.
fn pair(sides: (f64, f64), shown: fn(f64) -> String) -> String {
    match (shown(sides.0), shown(sides.1)) {
        (before, after) if before == after => after,
        (before, after) => format!("{before} → {after}"),
    }
}

fn role(role: ServiceRole) -> &'static str {
    match role {
        ServiceRole::Failing => "fails",
        ServiceRole::Slower => "slower",
        ServiceRole::Faster => "faster",
        ServiceRole::Calling => "calls",
        ServiceRole::Heavier => "uses more",
        ServiceRole::Called => "called",
        ServiceRole::Waiting => "waits",
        ServiceRole::Unchanged => "logs",
    }
}

/// True if something of the change begins in it.
fn is_origin(service: &ServiceDiff) -> bool {
    !matches!(service.role, ServiceRole::Waiting | ServiceRole::Unchanged)
}

/// True if only its messages say that something changed.
fn is_known_by_logs(service: &ServiceDiff) -> bool {
    service.role == ServiceRole::Unchanged && !service.logs.is_empty()
}

fn change_of(service: &ServiceDiff) -> String {
    let sign = if service.change_ns > 0.0 { "+" } else { "−" };
    match service.change_ns.abs() >= 1.0 {
        true => format!("{sign}{}", units::duration(service.change_ns.abs())),
        false => absent(),
    }
}

/// Kinds of messages that are new, gone, or more or less frequent.
fn messages(services: &[ServiceDiff]) -> Vec<Block> {
    let rows: Vec<(&ServiceDiff, &LogDiff)> =
        services.iter().flat_map(|service| service.logs.iter().map(move |kind| (service, kind))).collect();
    let has_calls = rows.iter().any(|(_, kind)| kind.calls.is_some());
    let header = ["messages", "", "before", "after", "of the calls"];
    let columns = if has_calls { header.len() } else { header.len() - 1 };
    let row = |row: &(&ServiceDiff, &LogDiff)| Row::new(message_cells(row.0, row.1).into_iter().take(columns));
    table(&header[..columns], rows.iter().map(row).collect()).into_iter().collect()
}

fn message_cells(service: &ServiceDiff, kind: &LogDiff) -> [String; 5] {
    let change = match (kind.fate, kind.growth) {
        (Fate::Vanished, _) => "gone".to_owned(),
        (_, Some(growth)) => format!("×{}", number(growth)),
        (_, None) => if kind.is_error { "new error" } else { "new" }.to_owned(),
    };
    let name = format!("{}: {}", service.service, kind.template);
    let calls = kind.calls.map_or_else(absent, |calls| pair(calls, units::percent));
    [name, change, units::count(kind.before), units::count(kind.after), calls]
}

fn operations(operations: &[OperationDiff]) -> Vec<Block> {
    let header = ["operation", "", "mean before", "mean after", "change"];
    let changed = operations.iter().filter(|operation| operation.fate != Fate::Same);
    let rows: Vec<Row> = changed.map(operation_row).collect();
    let same = unchanged(operations.len() - rows.len(), "operation", "operations");
    table(&header, rows).into_iter().chain(same).collect()
}

fn operation_row(operation: &OperationDiff) -> Row {
    let mean = |ns: Option<f64>| ns.map_or_else(absent, units::duration);
    let changed = operation.mean.as_ref().map(|mean| format!("{} ({})", change(mean), interval(mean)));
    Row::new([
        format!("{} {}", operation.service, operation.name),
        fate(operation.fate).to_owned(),
        mean(operation.before_ns),
        mean(operation.after_ns),
        changed.unwrap_or_default(),
    ])
}

fn calls(operations: &[OperationDiff]) -> Vec<Block> {
    let header = ["calls of an operation", "", "each before", "each after"];
    let all = || operations.iter().flat_map(|operation| operation.calls.iter().map(move |call| (operation, call)));
    let changed = all().filter(|(_, call)| call.fate != Fate::Same);
    let rows: Vec<Row> = changed.map(|(operation, call)| call_row(operation, call)).collect();
    let same = unchanged(all().count() - rows.len(), "kind of call", "kinds of calls");
    table(&header, rows).into_iter().chain(same).collect()
}

fn call_row(operation: &OperationDiff, call: &CallDiff) -> Row {
    let each = |calls: Option<f64>| calls.map_or_else(absent, number);
    let name = format!("{} → {} {}", operation.name, call.target, call.name);
    Row::new([name, fate(call.fate).to_owned(), each(call.before), each(call.after)])
}

/// Two texts first, then numbers; `None` without rows.
fn table(header: &[&str], rows: Vec<Row>) -> Option<Block> {
    let column = |(at, name): (usize, &&str)| if at < 2 { TableColumn::left(*name) } else { TableColumn::right(*name) };
    let columns = header.iter().enumerate().map(column).collect();
    (!rows.is_empty()).then(|| Block::Table(Table::new(columns, rows)))
}

fn findings(findings: &[FindingDiff]) -> Vec<Block> {
    let changed: Vec<&FindingDiff> = findings.iter().filter(|finding| finding.fate != Fate::Same).collect();
    let same = unchanged(findings.len() - changed.len(), "finding", "findings");
    let lines: Vec<Line> = changed.into_iter().filter_map(one).collect();
    let lines = (!lines.is_empty()).then_some(Block::Lines(lines));
    lines.into_iter().chain(same).collect()
}

fn one(finding: &FindingDiff) -> Option<Line> {
    let shown = finding.after.as_ref().or(finding.before.as_ref())?;
    let (label, tone) = match finding.fate {
        Fate::Appeared => ("+ appeared", Tone::Bad),
        Fate::Vanished => ("- vanished", Tone::Good),
        Fate::Changed | Fate::Same => ("~ changed", Tone::Doubtful),
    };
    let share = |side: &Option<Finding>| side.as_ref().map(|finding| units::percent(finding.cost_share));
    let cost = match (share(&finding.before), share(&finding.after)) {
        (Some(before), Some(after)) => format!("{before} → {after} {}", shown.cost_of()),
        (before, after) => format!("{} {}", before.or(after).unwrap_or_default(), shown.cost_of()),
    };
    Some(Line::new(label, shown.kind().to_string(), format!("{} ({cost})", shown.title())).tone(tone))
}

#[cfg(test)]
mod tests {
    use narrows_model::caveat::ComparisonCaveat;
    use narrows_model::comparison::{Basis, Change, Meaning};

    use super::*;
    use crate::text::Color;

    fn operation(name: &str, fate: Fate, sides: (Option<f64>, Option<f64>)) -> OperationDiff {
        let call = CallDiff {
            target: "postgres".into(),
            name: "SELECT".into(),
            fate: Fate::Changed,
            before: Some(11.0),
            after: Some(2.0),
        };
        let halved = Change { ratio: -0.5, low: -0.55, high: -0.45, meaning: Meaning::Lower };
        OperationDiff {
            service: "orders".into(),
            name: name.into(),
            fate,
            before_ns: sides.0,
            after_ns: sides.1,
            mean: (fate == Fate::Changed).then_some(halved),
            calls: if fate == Fate::Changed { vec![call] } else { Vec::new() },
        }
    }

    fn kind(template: &str, fate: Fate, counts: [u64; 2], growth: Option<f64>) -> LogDiff {
        let [before, after] = counts;
        LogDiff { template: template.into(), is_error: true, fate, before, after, growth, calls: None, operation: None }
    }

    fn service(name: &str, role: ServiceRole, before_ns: f64, after_ns: f64) -> ServiceDiff {
        ServiceDiff {
            service: name.into(),
            role,
            confidence: narrows_model::finding::Confidence::High,
            before_ns,
            after_ns,
            change_ns: after_ns - before_ns,
            share: Some((after_ns - before_ns) / 17.1e6),
            latency_share: (after_ns - before_ns) / 40e6,
            calls: (role == ServiceRole::Slower).then(|| ("postgresql".into(), 1.0, 11.0)),
            errors: if role == ServiceRole::Slower { (0.0, 0.02) } else { (0.0, 0.0) },
            requests: None,
            cpu: (role == ServiceRole::Slower).then_some((2e6, 9e6)),
            cpu_limit: (role == ServiceRole::Slower).then_some((2.0, 0.5)),
            memory: None,
            reached: None,
            call_ns: None,
            outside_ns: None,
            spans: Vec::new(),
            logs: match role {
                ServiceRole::Slower => {
                    let calls = Some((0.0, 0.83));
                    vec![LogDiff { calls, ..kind("pool * is empty", Fate::Appeared, [0, 12], None) }]
                }
                ServiceRole::Waiting => vec![kind("no response in * ms", Fate::Changed, [10, 41], Some(4.1))],
                _ => Vec::new(),
            },
            example: (role == ServiceRole::Slower).then(|| "4bf92f3577b34da6a3ce929d0e0e4736".into()),
        }
    }

    fn example() -> Diff {
        let cause = |detector: &str, cost_share: f64| Finding {
            resource: "orders".into(),
            operation: Some("GET /orders".into()),
            cost_share,
            ..Finding::new(detector.parse::<narrows_model::finding::FindingKind>().unwrap(), 1)
        };
        let finding = |fate, before, after| FindingDiff { fate, before, after };
        Diff {
            before: "orders:as-is".into(),
            after: "orders:fixed".into(),
            requests: Some(RequestsDiff { count: (1_200.0, 80.4), latency_ns: (37.8e6, 54.9e6) }),
            basis: Basis::MeasuredOnce,
            operations: vec![
                operation("GET /orders", Fate::Changed, (Some(40e6), Some(20e6))),
                operation("GET /search", Fate::Appeared, (None, Some(3e6))),
                operation("GET /health", Fate::Same, (Some(1e6), Some(1e6))),
            ],
            services: vec![
                service("stock", ServiceRole::Slower, 5e6, 22e6),
                service("orders", ServiceRole::Waiting, 12e6, 12.1e6),
                service("prices", ServiceRole::Unchanged, 2e6, 2e6),
            ],
            findings: vec![
                finding(Fate::Vanished, Some(cause("n-plus-one", 0.84)), None),
                finding(Fate::Changed, Some(cause("cpu-saturation", 0.97)), Some(cause("cpu-saturation", 0.91))),
                finding(Fate::Same, Some(cause("pool-wait", 0.2)), Some(cause("pool-wait", 0.2))),
            ],
            caveats: vec![ComparisonCaveat::DifferentRuns],
            sentence: "From orders:as-is to orders:fixed: n-plus-one of orders is gone.".into(),
        }
    }

    #[test]
    fn what_differs_is_listed_and_what_does_not_is_counted() {
        insta::assert_snapshot!(diff(&example(), Style { width: 100, color: Color::Never }));
    }

    #[test]
    fn what_the_sentence_may_speak_of_has_a_column() {
        let rare = ServiceDiff {
            reached: Some((0.03, 0.04)),
            call_ns: Some((2e6, 40e6)),
            ..service("stock", ServiceRole::Slower, 0.1e6, 1.6e6)
        };
        let heavier = ServiceDiff { memory: Some((2e8, 6e8)), ..service("prices", ServiceRole::Heavier, 2e6, 2e6) };
        let paused = ServiceDiff { outside_ns: Some((1e6, 16e6)), ..service("shop", ServiceRole::Slower, 2e6, 2e6) };
        let shown = |services| diff(&Diff { services, ..example() }, Style { width: 200, color: Color::Never });
        let text = shown(vec![rare, heavier, paused]);
        let has = |header: &str, cell: &str| text.contains(header) && text.contains(cell);
        assert!(has("each call", "2.00 ms → 40.0 ms") && has("reached by", "3.0 % → 4.0 %"), "{text}");
        assert!(has("in front of it", "1.00 ms → 16.0 ms"), "{text}");
        assert!(has("memory", "191 MiB → 572 MiB"), "{text}");
        let text = shown(example().services);
        assert!(!["each call", "reached by", "memory"].iter().any(|column| text.contains(column)), "{text}");
    }

    #[test]
    fn nothing_to_tell_leaves_the_sentence() {
        let mut same = example();
        (same.operations, same.findings, same.caveats) = (Vec::new(), Vec::new(), Vec::new());
        (same.requests, same.services) = (None, Vec::new());
        let told = diff(&same, Style { width: 100, color: Color::Never });
        assert_eq!(told, format!("orders:as-is → orders:fixed\n\n{}\n", same.sentence));
    }
}
