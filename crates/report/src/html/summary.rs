//! The top of the page: the variants beside each other with small bars, and the objectives.

use narrows_model::comparison::{Change, Difference, Kept, Meaning, Outcome, VariantSummary};
use narrows_model::units;

use super::escape::Esc;
use crate::figures::{MEASURED_ONCE, change, cpu_per_request, interval, measured_once};

/// The table of variants; empty when none was measured.
pub(super) fn variants(outcome: &Outcome) -> String {
    let variants = &outcome.comparison.variants;
    let Some(first) = variants.first() else { return String::new() };
    let repeated = variants.iter().any(|variant| variant.repetitions > 1);
    let compared = variants.len() > 1;
    let mut head = "<th>variant</th>".to_owned();
    if repeated {
        head += "<th class=\"n\">repetitions</th>";
    }
    for name in ["throughput", "mean", "p50", "p95", "p99", "errors", "CPU per request"] {
        head += &format!("<th class=\"n\">{name}</th>");
    }
    if compared {
        let first = Esc(&first.variant);
        head += &format!("<th>throughput vs {first}</th><th>mean latency vs {first}</th>");
    }
    let rows: String = variants.iter().map(|variant| row(variant, variants, repeated, compared)).collect();
    format!(
        "<section id=\"variants\"><div class=\"scroll\"><table class=\"variants\"><thead><tr>{head}</tr></thead>\
         <tbody>{rows}</tbody></table></div>{}{}</section>\n",
        once(outcome),
        noise(outcome)
    )
}

/// A figure of a variant; `None` if it was not measured.
type Figure = fn(&VariantSummary) -> Option<f64>;

fn row(variant: &VariantSummary, all: &[VariantSummary], repeated: bool, compared: bool) -> String {
    let mut out = format!("<tr><th scope=\"row\">{}</th>", Esc(&variant.variant));
    if repeated {
        out += &format!("<td class=\"n\">{}</td>", variant.repetitions);
    }
    if variant.repetitions == 0 {
        let cells = if compared { 9 } else { 7 };
        return out + &"<td class=\"n\">–</td>".repeat(cells) + "</tr>";
    }
    let barred = |of: Figure, shown: fn(f64) -> String| {
        let Some(value) = of(variant) else { return "<td class=\"n\">–</td>".to_owned() };
        let most = all.iter().filter_map(of).fold(0.0, f64::max);
        let share = if most > 0.0 { value / most * 100.0 } else { 0.0 };
        format!("<td class=\"n\">{}<span class=\"bar\"><i style=\"width:{share:.1}%\"></i></span></td>", shown(value))
    };
    out += &barred(|v| v.rate, units::rate);
    let latencies: [Figure; 4] = [|v| v.mean_ns, |v| v.p50_ns, |v| v.p95_ns, |v| v.p99_ns];
    for of in latencies {
        out += &barred(of, units::duration);
    }
    out += &format!("<td class=\"n{}\">{}</td>", if variant.errors > 0 { " bad" } else { "" }, errors(variant));
    out += &barred(|v| v.cpu_seconds_per_request, |seconds| cpu_per_request(Some(seconds)));
    if compared {
        let cell = |of: fn(&Difference) -> &Change, good| {
            let text = variant.against_first.as_ref().map_or("<small>–</small>".to_owned(), |d| compare(of(d), good));
            format!("<td>{text}</td>")
        };
        out += &cell(|d| &d.rate, Meaning::Higher);
        out += &cell(|d| &d.mean, Meaning::Lower);
    }
    out + "</tr>"
}

fn errors(variant: &VariantSummary) -> String {
    match variant.errors {
        0 => "0".to_owned(),
        n => format!("{} <small>{}</small>", units::count(n), share_of_errors(variant.error_rate)),
    }
}

/// A small share keeps a digit that means something.
fn share_of_errors(share: f64) -> String {
    match share * 100.0 {
        v if v > 0.0 && v < 0.1 => format!("{} %", format!("{v:.4}").trim_end_matches('0')),
        _ => units::percent(share),
    }
}

fn compare(of: &Change, good: Meaning) -> String {
    let class = match of.meaning {
        Meaning::Same | Meaning::Unclear => "same",
        meaning if meaning == good => "better",
        _ => "worse",
    };
    format!("<b class=\"{class}\">{}</b> <small>{}</small>", change(of), interval(of))
}

fn once(outcome: &Outcome) -> String {
    let Some(names) = measured_once(&outcome.comparison) else { return String::new() };
    format!("<p class=\"note\">Measured once: {}. {}</p>", Esc(names), MEASURED_ONCE.replace('`', ""))
}

fn noise(outcome: &Outcome) -> String {
    let Some(noise) = outcome.comparison.noise else { return String::new() };
    format!(
        "<p class=\"note\">Repetitions of one variant lie apart by up to {} in throughput, {} in mean latency, {} at p95 \
         and {} at p99.</p>",
        units::percent(noise.rate),
        units::percent(noise.mean),
        units::percent(noise.p95),
        units::percent(noise.p99)
    )
}

/// The objectives of every trial; empty when there are none.
pub(super) fn objectives(outcome: &Outcome) -> String {
    let trials = outcome.evidence.trials.iter().zip(&outcome.objectives);
    let rows: String = trials
        .flat_map(|(evidence, results)| results.iter().map(|result| (evidence.trial.label(), result)))
        .map(|(label, result)| {
            let mark = match result.kept {
                Kept::Yes => "<b class=\"better\">✓ kept</b>",
                Kept::No => "<b class=\"worse\">✗ missed</b>",
                Kept::Unknown => "<span class=\"same\">? not measured</span>",
            };
            let (text, measured) = (Esc(&result.text), Esc(&result.measured));
            format!(
                "<tr><th scope=\"row\">{}</th><td><code>{text}</code></td><td>{measured}</td><td>{mark}</td></tr>",
                Esc(label)
            )
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"objectives\"><h2>Objectives</h2><div class=\"scroll\"><table><thead><tr><th>trial</th>\
         <th>objective</th><th>measured</th><th></th></tr></thead><tbody>{rows}</tbody></table></div></section>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_change_is_better_or_worse_by_its_direction() {
        let change = |meaning| Change { ratio: 0.5, low: 0.4, high: 0.6, meaning };
        assert!(compare(&change(Meaning::Higher), Meaning::Higher).contains("better"));
        assert!(compare(&change(Meaning::Higher), Meaning::Lower).contains("worse"));
        assert!(compare(&change(Meaning::Same), Meaning::Lower).contains(">same<"));
    }

    #[test]
    fn what_was_measured_once_is_named() {
        assert!(variants(&fixture::outcome()).contains("Measured once: every variant. "));
    }

    #[test]
    fn few_errors_are_not_rounded_away() {
        let outcome = fixture::outcome();
        assert_eq!(errors(&outcome.comparison.variants[0]), "8 <small>0.05 %</small>");
        assert_eq!(errors(&outcome.comparison.variants[1]), "0");
    }
}
