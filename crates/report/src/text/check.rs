//! A run beside its baseline, as text: the figures of each variant, findings that came or went, services by change.

use narrows_model::baseline::{Check, FigureCheck, FindingCheck, Grade, Measure, ServiceCheck, VariantCheck};
use narrows_model::diff::Fate;

use super::paint::{Paint, clean, hanging, wrap};
use super::table::{Align, render};
use super::{Style, WIDTH_MIN, comparison_caveats};
use crate::checked::{change_ns, grade, has_moved, interval, name, value};
use crate::figures::{plural, ratio};

/// Services of a variant that are listed.
const SERVICES_MAX: usize = 5;

/// The text of `narrows baseline check`. Ends with a line feed.
pub fn check(check: &Check, style: Style) -> String {
    let (paint, width) = (Paint(style.color), style.width.max(WIDTH_MIN));
    let lines = |text: &str, painted: &dyn Fn(&str) -> String| -> String {
        wrap(&clean(text), width).iter().map(|line| format!("{}\n", painted(line))).collect()
    };
    let is_worse = check.is_worse();
    let sentence = lines(&check.sentence, &|line| match is_worse {
        true => paint.bold(&paint.red(line)),
        false => paint.bold(line),
    });
    let caveats = comparison_caveats(&check.caveats, paint, width);
    let head = lines(&format!("{} beside its baseline", check.run), &|line| paint.bold(line));
    let variants = check.variants.iter().map(|variant| of_variant(variant, paint, width));
    let sections: Vec<String> = std::iter::once(head).chain(variants).chain([caveats, sentence]).collect();
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn of_variant(variant: &VariantCheck, paint: Paint, width: usize) -> String {
    let (before, after) = variant.trials;
    let trials = |n: u32| plural(n as usize, "trial", "trials");
    let title = format!("{} · {} before, {} now\n", clean(&variant.variant), trials(before), trials(after));
    let parts = [
        paint.dim(title.trim_end()) + "\n",
        figures(&variant.figures, paint, width),
        findings(&variant.findings, paint, width),
        services(&variant.services, paint, width),
    ];
    parts.concat()
}

fn figures(figures: &[FigureCheck], paint: Paint, width: usize) -> String {
    let columns = [("", Align::Left), ("before", Align::Right), ("now", Align::Right), ("change", Align::Right)];
    let more = [("interval", Align::Left), ("", Align::Left)];
    let header: Vec<(String, Align)> =
        columns.into_iter().chain(more).map(|(name, align)| (name.to_owned(), align)).collect();
    // Of operations, only those that changed: a run may have many.
    let is_shown = |figure: &&FigureCheck| !matches!(figure.measure, Measure::Operation { .. }) || has_moved(figure);
    let row = |figure: &FigureCheck| {
        let change = if figure.measure == Measure::Errors { String::new() } else { ratio(figure.ratio()) };
        let (before, now) = (value(figure, figure.before), value(figure, figure.after));
        vec![clean(&name(figure)), before, now, change, interval(figure), grade(figure.grade).to_owned()]
    };
    let rows: Vec<Vec<String>> = figures.iter().filter(is_shown).map(row).collect();
    let left_out = figures.len() - rows.len();
    let same = match left_out {
        0 => String::new(),
        n => format!("{}\n", paint.dim(&format!("{} not shown to differ", plural(n, "operation", "operations")))),
    };
    let is_worse = figures.iter().any(|figure| figure.grade == Grade::Worse);
    let table = render(&header, &rows, paint, width);
    let worse = grade(Grade::Worse);
    let table = if is_worse { table.replace(worse, &paint.red(worse)) } else { table };
    table + &same
}

fn findings(findings: &[FindingCheck], paint: Paint, width: usize) -> String {
    let line = |one: &FindingCheck| {
        let text = match (&one.title, &one.finding.operation) {
            (Some(title), _) => format!("{}: {title}", one.finding.kind),
            (None, Some(operation)) => format!("{}: {} {operation}", one.finding.kind, one.finding.resource),
            (None, None) => format!("{}: {}", one.finding.kind, one.finding.resource),
        };
        match one.fate {
            Fate::Vanished => hanging("- vanished ", &paint.green("- vanished "), &text, 0, width),
            _ => hanging("+ appeared ", &paint.red("+ appeared "), &text, 0, width),
        }
    };
    findings.iter().map(line).collect()
}

fn services(services: &[ServiceCheck], paint: Paint, width: usize) -> String {
    let header =
        [("service", Align::Left), ("of each request", Align::Right), ("now", Align::Right), ("change", Align::Right)]
            .map(|(name, align)| (name.to_owned(), align));
    let row = |one: &ServiceCheck| {
        let shown = narrows_model::units::duration;
        vec![clean(&one.service), shown(one.before_ns), shown(one.after_ns), change_ns(one.after_ns - one.before_ns)]
    };
    let rows: Vec<Vec<String>> = services.iter().take(SERVICES_MAX).map(row).collect();
    if rows.is_empty() { String::new() } else { format!("\n{}", render(&header, &rows, paint, width)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::text::Color;

    #[test]
    fn it_reads_from_top_to_bottom() {
        let style = Style { width: 90, color: Color::Never };
        insta::assert_snapshot!(check(&fixture::check(), style), @r#"
        orders-20251121-123000 beside its baseline

        as-is · 5 trials before, 5 trials now
                                 before      now  change  interval
        ─────────────────────────────────────────────────────────────────────────────
        throughput                100/s    100/s  +0.2 %  −5.0 to +6.0 %  same
        mean latency            12.0 ms  17.0 ms   +42 %  +20 to +68 %    worse ✗
        99 % latency            40.0 ms  44.0 ms   +10 %  −30 to +70 %    cannot tell
        orders GET /orders|all  11.0 ms  16.0 ms   +45 %  +20 to +70 %    worse ✗
        failed requests             0 %    3.0 %                          worse ✗
        1 operation not shown to differ
        + appeared  n-plus-one: GET /orders fetches rows one at a time: <50> queries
        - vanished  slow-query: orders GET /items

        service   of each request      now    change
        ────────────────────────────────────────────
        postgres          4.00 ms  9.00 ms  +5.00 ms
        orders            8.00 ms  8.00 ms         –

        caveat      Not in the baseline, and not checked: fixed.

        orders is worse than its baseline: mean latency of as-is +42 %.
        "#);
    }
}
