//! The findings of each variant as text, dearest first.
//!
//! Only what a reader acts on is told here; what would prove a finding wrong is told too, because a reader should know
//! how to doubt. Query text keeps its lines.

use narrows_model::comparison::Outcome;
use narrows_model::finding::Finding;
use narrows_model::units;

use super::paint::{Paint, clean, hanging, wrap};
use crate::figures::{figure, plural};
use crate::recurring::{self, Recurring, VariantFindings};

/// Left edge of what is said about a finding.
const INDENT: usize = 3;
/// Lines of source text shown for one finding.
const EVIDENCE_LINES_MAX: usize = 12;
/// Trace ids shown for one finding.
const EXEMPLARS_MAX: usize = 3;

/// The findings of every variant.
pub(super) fn all(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let sections: Vec<String> =
        recurring::by_variant(outcome).iter().map(|variant| of_variant(variant, paint, width)).collect();
    sections.join("\n")
}

fn of_variant(variant: &VariantFindings<'_>, paint: Paint, width: usize) -> String {
    let name = paint.bold(&clean(variant.variant));
    if variant.findings.is_empty() {
        return format!("{name}: {}\n", variant.nothing());
    }
    let mut out = format!("{name}: {}\n", plural(variant.findings.len(), "finding", "findings"));
    for (index, recurring) in variant.findings.iter().enumerate() {
        out += &format!("\n{}", one(index + 1, variant, recurring, paint, width));
    }
    out
}

fn one(rank: usize, variant: &VariantFindings<'_>, recurring: &Recurring<'_>, paint: Paint, width: usize) -> String {
    let finding = recurring.finding;
    let title = wrap(&clean(&finding.title), width - INDENT);
    let mut out = String::new();
    for (index, line) in title.iter().enumerate() {
        let lead = if index == 0 { format!("{rank:<INDENT$}") } else { " ".repeat(INDENT) };
        out += &format!("{lead}{}\n", paint.bold(line));
    }
    let mut said = |label: &str, text: &str| out += &hanging(label, &paint.dim(label), text, INDENT, width);
    said("costs", &format!("{} {}", units::percent(finding.cost_share), finding.cost_of));
    let mut sure = vec![finding.confidence.as_str().to_owned()];
    sure.extend(variant.recurrence(recurring));
    said("confidence", &format!("{}. {}", sure.join(", "), finding.reasons.join(" ")));
    for (index, number) in finding.numbers.iter().enumerate() {
        said(if index == 0 { "measured" } else { "" }, &format!("{}: {}", number.name, figure(number)));
    }
    if let Some(text) = &finding.evidence_text {
        out += &evidence(text, paint, width);
    }
    out + &closing(finding, paint, width)
}

fn closing(finding: &Finding, paint: Paint, width: usize) -> String {
    let mut out = String::new();
    let mut said = |label: &str, text: &str| out += &hanging(label, &paint.dim(label), text, INDENT, width);
    if !finding.exemplars.is_empty() {
        let ids: Vec<&str> = finding.exemplars.iter().take(EXEMPLARS_MAX).map(|e| e.trace_id.as_str()).collect();
        said("traces", &ids.join(", "));
    }
    for (index, text) in finding.ruled_out.iter().enumerate() {
        said(if index == 0 { "ruled out" } else { "" }, text);
    }
    if !finding.falsified_by.is_empty() {
        said("wrong if", &finding.falsified_by);
    }
    finding.caveats.iter().for_each(|text| said("caveat", text));
    out + &hanging("try", &paint.green("try"), &finding.advice, INDENT, width)
}

fn evidence(text: &str, paint: Paint, width: usize) -> String {
    let lines: Vec<String> = text.lines().flat_map(|line| wrap(&clean(line), width - INDENT - 2)).collect();
    let mut out = String::new();
    for line in lines.iter().take(EVIDENCE_LINES_MAX) {
        out += &format!("{}{} {line}\n", " ".repeat(INDENT), paint.dim("│"));
    }
    if lines.len() > EVIDENCE_LINES_MAX {
        let rest = plural(lines.len() - EVIDENCE_LINES_MAX, "more line", "more lines");
        out += &format!("{}{} … {rest}\n", " ".repeat(INDENT), paint.dim("│"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Color;

    #[test]
    fn long_source_text_is_cut() {
        let text = "SELECT 1\n".repeat(EVIDENCE_LINES_MAX + 30);
        let shown = evidence(&text, Paint(Color::Never), 80);
        assert_eq!(shown.lines().count(), EVIDENCE_LINES_MAX + 1);
        assert!(shown.ends_with("│ … 30 more lines\n"), "{shown}");
    }
}
