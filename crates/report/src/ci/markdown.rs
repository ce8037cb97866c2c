//! A check as Markdown, for the summary of a job or a comment on a pull request.

use narrows_diagnose::words::comparison_caveat;
use narrows_model::baseline::{Check, FigureCheck, FindingCheck, Measure, ServiceCheck, VariantCheck};
use narrows_model::diff::Fate;
use narrows_model::units;

use crate::checked::{change_ns, grade, has_moved, interval, name, value};
use crate::figures::ratio;
use crate::table::escaped;

/// Services of a variant that are listed.
const SERVICES_MAX: usize = 5;

/// The text. Ends with a line feed.
pub fn markdown(check: &Check) -> String {
    let mark = if check.is_worse() { "❌" } else { "✅" };
    let mut out = format!("### {mark} {}\n\n{}\n", escaped(&check.experiment), escaped(&check.sentence));
    for variant in &check.variants {
        out += &of_variant(variant);
    }
    for caveat in &check.caveats {
        out += &format!("\n> {}\n", escaped(&comparison_caveat(caveat)));
    }
    out
}

fn of_variant(variant: &VariantCheck) -> String {
    let mut out = format!(
        "\n**{}** ({} trials before, {} now)\n\n| | before | now | change | interval | |\n|---|---:|---:|---:|---|---|\n",
        escaped(&variant.variant),
        variant.trials.0,
        variant.trials.1
    );
    let is_shown = |figure: &&FigureCheck| !matches!(figure.measure, Measure::Operation { .. }) || has_moved(figure);
    variant.figures.iter().filter(is_shown).for_each(|figure| out += &row(figure));
    if !variant.findings.is_empty() {
        out.push('\n');
        variant.findings.iter().for_each(|finding| out += &item(finding));
    }
    let services: String = variant.services.iter().take(SERVICES_MAX).map(service).collect();
    if !services.is_empty() {
        out += &format!("\n| service | of each request | now | change |\n|---|---:|---:|---:|\n{services}");
    }
    out
}

fn row(figure: &FigureCheck) -> String {
    let change = if figure.measure == Measure::Errors { String::new() } else { ratio(figure.ratio()) };
    let cells = [
        escaped(&name(figure)),
        value(figure, figure.before),
        value(figure, figure.after),
        change,
        interval(figure),
        grade(figure.grade).to_owned(),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn item(finding: &FindingCheck) -> String {
    let known = &finding.finding;
    let text = match (&finding.title, &known.operation) {
        (Some(title), _) => title.clone(),
        (None, Some(operation)) => format!("{} {operation}", known.resource),
        (None, None) => known.resource.clone(),
    };
    let fate = if finding.fate == Fate::Vanished { "vanished" } else { "**appeared**" };
    format!("- {fate}: `{}` {}\n", known.kind.replace('`', ""), escaped(&text))
}

fn service(one: &ServiceCheck) -> String {
    let (before, after) = (units::duration(one.before_ns), units::duration(one.after_ns));
    let change = change_ns(one.after_ns - one.before_ns);
    format!("| {} | {before} | {after} | {change} |\n", escaped(&one.service))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_check_reads_in_a_comment() {
        insta::assert_snapshot!(markdown(&fixture::check()), @r#"
        ### ❌ orders

        orders is worse than its baseline: mean latency of as-is +42 %.

        **as-is** (5 trials before, 5 now)

        | | before | now | change | interval | |
        |---|---:|---:|---:|---|---|
        | throughput | 100/s | 100/s | +0.2 % | −5.0 to +6.0 % | same |
        | mean latency | 12.0 ms | 17.0 ms | +42 % | +20 to +68 % | worse ✗ |
        | 99 % latency | 40.0 ms | 44.0 ms | +10 % | −30 to +70 % | cannot tell |
        | orders GET /orders\|all | 11.0 ms | 16.0 ms | +45 % | +20 to +70 % | worse ✗ |
        | failed requests | 0 % | 3.0 % |  |  | worse ✗ |

        - **appeared**: `n-plus-one` GET /orders fetches rows one at a time: &lt;50> queries
        - vanished: `slow-query` orders GET /items

        | service | of each request | now | change |
        |---|---:|---:|---:|
        | postgres | 4.00 ms | 9.00 ms | +5.00 ms |
        | orders | 8.00 ms | 8.00 ms | – |

        > Not in the baseline, and not checked: fixed.
        "#);
    }
}
