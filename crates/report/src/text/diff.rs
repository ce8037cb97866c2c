//! Two variants beside each other as text: operations, their calls, findings, what may be doubted, the sentence.
//!
//! What is the same on both sides is counted, not listed.

use narrows_model::diff::{CallDiff, Diff, Fate, FindingDiff, OperationDiff, ServiceDiff, ServiceRole};
use narrows_model::finding::Finding;
use narrows_model::units;

use super::paint::{Paint, clean, hanging, wrap};
use super::table::{Align, render};
use super::{Style, WIDTH_MIN};
use crate::figures::{change, interval, number, plural};

/// The text of `narrows diff`. Ends with a line feed.
pub fn diff(diff: &Diff, style: Style) -> String {
    let (paint, width) = (Paint(style.color), style.width.max(WIDTH_MIN));
    let sections = [
        header(diff, paint, width),
        services(&diff.services, paint, width),
        operations(&diff.operations, paint, width),
        calls(&diff.operations, paint, width),
        findings(&diff.findings, paint, width),
        caveats(&diff.caveats, paint, width),
        lines(&diff.sentence, width, |line| paint.bold(line)),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    sections.join("\n")
}

fn lines(text: &str, width: usize, painted: impl Fn(&str) -> String) -> String {
    wrap(&clean(text), width).iter().map(|line| format!("{}\n", painted(line))).collect()
}

fn header(diff: &Diff, paint: Paint, width: usize) -> String {
    lines(&format!("{} → {}", diff.before, diff.after), width, |line| paint.bold(line))
}

fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Appeared => "appeared",
        Fate::Vanished => "vanished",
        Fate::Changed => "changed",
        Fate::Same => "same",
    }
}

/// How many were left out because they are the same.
fn unchanged(count: usize, one: &str, many: &str, paint: Paint) -> String {
    if count == 0 {
        String::new()
    } else {
        format!("{}\n", paint.dim(&format!("{} the same", plural(count, one, many))))
    }
}

fn services(services: &[ServiceDiff], paint: Paint, width: usize) -> String {
    let header = ["service", "", "of each request", "change", "share", "errors", "CPU of each", "calls"];
    let has_cpu = services.iter().any(|service| service.cpu.is_some());
    let header: Vec<&str> = header.into_iter().filter(|name| has_cpu || *name != "CPU of each").collect();
    let is_shown = |service: &&ServiceDiff| service.role != ServiceRole::Unchanged || service.calls.is_some();
    let rows: Vec<Vec<String>> =
        services.iter().filter(is_shown).map(|service| service_row(service, has_cpu)).collect();
    let same = services.len() - rows.len();
    table(&header, &rows, paint, width) + &unchanged(same, "service", "services", paint)
}

fn service_row(service: &ServiceDiff, has_cpu: bool) -> Vec<String> {
    let role = match service.role {
        ServiceRole::Failing => "fails",
        ServiceRole::Slower => "slower",
        ServiceRole::Faster => "faster",
        ServiceRole::Waiting => "waits",
        ServiceRole::Unchanged => "calls",
    };
    let pair = |(before, after): (f64, f64), shown: fn(f64) -> String| match (shown(before), shown(after)) {
        (before, after) if before == after => after,
        (before, after) => format!("{before} → {after}"),
    };
    let sign = if service.change_ns > 0.0 { "+" } else { "−" };
    let is_cause = service.change_ns.abs() >= 1.0;
    let of_cause = |shown: String| if is_cause { shown } else { "–".to_owned() };
    let cpu = || service.cpu.map_or_else(|| "–".to_owned(), |cpu| pair(cpu, units::duration));
    let cells = [
        clean(&service.service),
        role.into(),
        pair((service.before_ns, service.after_ns), units::duration),
        of_cause(format!("{sign}{}", units::duration(service.change_ns.abs()))),
        of_cause(units::percent(service.share.abs())),
        pair(service.errors, units::percent),
    ];
    let calls = service
        .calls
        .as_ref()
        .map_or_else(String::new, |(callee, old, new)| clean(&format!("{callee} {} → {}", number(*old), number(*new))));
    cells.into_iter().chain(has_cpu.then(cpu)).chain([calls]).collect()
}

fn operations(operations: &[OperationDiff], paint: Paint, width: usize) -> String {
    let header = ["operation", "", "mean before", "mean after", "change"];
    let changed = operations.iter().filter(|operation| operation.fate != Fate::Same);
    let rows: Vec<Vec<String>> = changed.map(operation_row).collect();
    let same = operations.len() - rows.len();
    table(&header, &rows, paint, width) + &unchanged(same, "operation", "operations", paint)
}

fn operation_row(operation: &OperationDiff) -> Vec<String> {
    let mean = |ns: Option<f64>| ns.map_or_else(|| "–".to_owned(), units::duration);
    let changed = operation.mean.as_ref().map(|mean| format!("{} ({})", change(mean), interval(mean)));
    vec![
        clean(&format!("{} {}", operation.service, operation.name)),
        fate(operation.fate).into(),
        mean(operation.before_ns),
        mean(operation.after_ns),
        changed.unwrap_or_default(),
    ]
}

fn calls(operations: &[OperationDiff], paint: Paint, width: usize) -> String {
    let header = ["calls of an operation", "", "each before", "each after"];
    let all = || operations.iter().flat_map(|operation| operation.calls.iter().map(move |call| (operation, call)));
    let rows: Vec<Vec<String>> = all().filter(|(_, call)| call.fate != Fate::Same).map(call_row).collect();
    let same = all().count() - rows.len();
    table(&header, &rows, paint, width) + &unchanged(same, "kind of call", "kinds of calls", paint)
}

fn call_row((operation, call): (&OperationDiff, &CallDiff)) -> Vec<String> {
    let each = |calls: Option<f64>| calls.map_or_else(|| "–".to_owned(), number);
    vec![
        clean(&format!("{} → {} {}", operation.name, call.target, call.name)),
        fate(call.fate).into(),
        each(call.before),
        each(call.after),
    ]
}

/// Two texts first, then numbers.
fn table(header: &[&str], rows: &[Vec<String>], paint: Paint, width: usize) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let align = |at: usize| if at < 2 { Align::Left } else { Align::Right };
    let header: Vec<_> = header.iter().enumerate().map(|(at, name)| ((*name).to_owned(), align(at))).collect();
    render(&header, rows, paint, width)
}

fn findings(findings: &[FindingDiff], paint: Paint, width: usize) -> String {
    let changed: Vec<&FindingDiff> = findings.iter().filter(|finding| finding.fate != Fate::Same).collect();
    let out: String = changed.iter().map(|finding| one(finding, paint, width)).collect();
    out + &unchanged(findings.len() - changed.len(), "finding", "findings", paint)
}

fn one(finding: &FindingDiff, paint: Paint, width: usize) -> String {
    let Some(shown) = finding.after.as_ref().or(finding.before.as_ref()) else { return String::new() };
    let mark = match finding.fate {
        Fate::Appeared => paint.red("+ appeared"),
        Fate::Vanished => paint.green("- vanished"),
        Fate::Changed | Fate::Same => paint.yellow("~ changed "),
    };
    let share = |side: &Option<Finding>| side.as_ref().map(|finding| units::percent(finding.cost_share));
    let cost = match (share(&finding.before), share(&finding.after)) {
        (Some(before), Some(after)) => format!("{before} → {after} {}", shown.cost_of),
        (before, after) => format!("{} {}", before.or(after).unwrap_or_default(), shown.cost_of),
    };
    let text = format!("{}: {} ({cost})", shown.kind(), shown.title);
    hanging("~ changed ", &mark, &clean(&text), 0, width)
}

fn caveats(caveats: &[String], paint: Paint, width: usize) -> String {
    caveats.iter().map(|caveat| hanging("caveat", &paint.yellow("caveat"), &clean(caveat), 0, width)).collect()
}

#[cfg(test)]
mod tests {
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

    fn service(name: &str, role: ServiceRole, (before_ns, after_ns): (f64, f64)) -> ServiceDiff {
        ServiceDiff {
            service: name.into(),
            role,
            confidence: narrows_model::finding::Confidence::High,
            before_ns,
            after_ns,
            change_ns: after_ns - before_ns,
            share: (after_ns - before_ns) / 17.1e6,
            latency_share: (after_ns - before_ns) / 40e6,
            calls: (role == ServiceRole::Slower).then(|| ("postgresql".into(), 1.0, 11.0)),
            errors: (0.0, 0.0),
            cpu: (role == ServiceRole::Slower).then_some((2e6, 9e6)),
        }
    }

    fn example() -> Diff {
        let cause = |detector: &str, cost_share: f64| Finding {
            title: "GET /orders fetches rows one at a time".into(),
            cost_share,
            cost_of: "of the latency of GET /orders".into(),
            ..Finding::new(detector.parse::<narrows_model::finding::FindingKind>().unwrap(), 1)
        };
        let finding = |fate, before, after| FindingDiff { fate, before, after };
        Diff {
            before: "orders:as-is".into(),
            after: "orders:fixed".into(),
            basis: Basis::MeasuredOnce,
            operations: vec![
                operation("GET /orders", Fate::Changed, (Some(40e6), Some(20e6))),
                operation("GET /search", Fate::Appeared, (None, Some(3e6))),
                operation("GET /health", Fate::Same, (Some(1e6), Some(1e6))),
            ],
            services: vec![
                service("stock", ServiceRole::Slower, (5e6, 22e6)),
                service("orders", ServiceRole::Waiting, (12e6, 12.1e6)),
                service("prices", ServiceRole::Unchanged, (2e6, 2e6)),
            ],
            findings: vec![
                finding(Fate::Vanished, Some(cause("n-plus-one", 0.84)), None),
                finding(Fate::Changed, Some(cause("cpu-saturation", 0.97)), Some(cause("cpu-saturation", 0.91))),
                finding(Fate::Same, Some(cause("pool-wait", 0.2)), Some(cause("pool-wait", 0.2))),
            ],
            caveats: vec!["The two are of different runs.".into()],
            sentence: "From orders:as-is to orders:fixed: n-plus-one of orders is gone.".into(),
        }
    }

    #[test]
    fn what_differs_is_listed_and_what_does_not_is_counted() {
        insta::assert_snapshot!(diff(&example(), Style { width: 100, color: Color::Never }));
    }

    #[test]
    fn nothing_to_tell_leaves_the_sentence() {
        let mut same = example();
        (same.operations, same.findings, same.caveats) = (Vec::new(), Vec::new(), Vec::new());
        same.services.clear();
        let told = diff(&same, Style { width: 100, color: Color::Never });
        assert_eq!(told, format!("orders:as-is → orders:fixed\n\n{}\n", same.sentence));
    }
}
