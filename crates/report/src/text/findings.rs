//! The findings of each variant as text, dearest first.
//!
//! Only what a reader acts on is reported here; what would prove a finding wrong is too, because a reader should know
//! how to doubt. Query text keeps its lines. The narrow place is marked, and so is what is about the experiment; effects
//! stand in brief below their cause.

use narrows_model::comparison::Outcome;
use narrows_model::finding::{Finding, Role, Wording};
use narrows_model::units;

use super::paint::{Paint, clean, hanging, wrap};
use crate::figures::{figure, plural};
use crate::recurring::{self, Recurring, VariantFindings, effect, gains};

/// Of more variants than this, findings are reported in brief: the rest is in the page and the JSON.
const WHOLE_VARIANTS_MAX: usize = 2;
/// Findings of one variant reported in brief.
const BRIEF_MAX: usize = 3;
/// Left edge of the text about a finding.
const INDENT: usize = 3;
/// Lines of source text shown for one finding.
const EVIDENCE_LINES_MAX: usize = 12;
/// Effects shown below one finding.
const EFFECTS_MAX: usize = 6;
/// Trace ids shown for one finding.
const EXEMPLARS_MAX: usize = 3;

/// Level of detail about a finding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// All of it.
    Whole,
    /// Its cost, its figures and the advice.
    Brief,
}

/// The findings of every variant.
pub(super) fn all(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let variants = recurring::by_variant(outcome);
    let detail = if variants.len() > WHOLE_VARIANTS_MAX { Detail::Brief } else { Detail::Whole };
    let sections: Vec<String> = variants.iter().map(|variant| of_variant(variant, detail, paint, width)).collect();
    let any = variants.iter().any(|variant| !variant.findings.is_empty());
    match detail {
        Detail::Brief if any => {
            let rest = "Reasons, what was ruled out, what would prove a finding wrong: in the page and the JSON.";
            let rest: String = wrap(rest, width).iter().map(|line| format!("{}\n", paint.dim(line))).collect();
            format!("{}\n{rest}", sections.join("\n"))
        }
        _ => sections.join("\n"),
    }
}

fn of_variant(variant: &VariantFindings<'_>, detail: Detail, paint: Paint, width: usize) -> String {
    let name = paint.bold(&clean(variant.variant));
    if variant.findings.is_empty() {
        return format!("{name}: {}\n", variant.nothing());
    }
    let mut out = format!("{name}: {}\n", plural(variant.findings.len(), "finding", "findings"));
    if detail == Detail::Brief {
        for (index, recurring) in variant.findings.iter().take(BRIEF_MAX).enumerate() {
            out += &brief(index + 1, variant, recurring, paint, width);
        }
        if let Some(more) = variant.findings.len().checked_sub(BRIEF_MAX).filter(|more| *more > 0) {
            let more = format!("{} less", plural(more, "more costs", "more cost"));
            out += &format!("{}{}\n", " ".repeat(INDENT), paint.dim(&more));
        }
        return out;
    }
    for (index, recurring) in variant.findings.iter().enumerate() {
        out += &format!("\n{}", one(index + 1, variant, recurring, paint, width));
    }
    out
}

fn title(rank: usize, title: &str, paint: Paint, width: usize) -> String {
    let lines = wrap(&clean(title), width - INDENT);
    let lead = |index| if index == 0 { format!("{rank:<INDENT$}") } else { " ".repeat(INDENT) };
    lines.iter().enumerate().map(|(index, line)| format!("{}{}\n", lead(index), paint.bold(line))).collect()
}

/// The title, and below it what the finding is to its trial.
fn heading(rank: usize, recurring: &Recurring<'_>, wording: &Wording, paint: Paint, width: usize) -> String {
    let painted = |place: &str| match recurring.role {
        Role::NarrowPlace => paint.green(place),
        Role::Invalidates => paint.red(place),
        _ => paint.dim(place),
    };
    let place = recurring.place().map(|place| format!("{}{}\n", " ".repeat(INDENT), painted(place)));
    title(rank, &wording.title, paint, width) + &place.unwrap_or_default()
}

/// Effects that go away with the finding; `detail` sets how much is reported of each.
fn effects(finding: &Finding, wording: &Wording, detail: Detail, paint: Paint, width: usize) -> String {
    let mut out = String::new();
    let effects = finding.effects.iter().zip(&wording.effects).take(EFFECTS_MAX);
    for (index, (line, why)) in effects.map(|(finding, wording)| effect(finding, wording)).enumerate() {
        let label = if index == 0 { "effects" } else { "" };
        let text = match detail {
            Detail::Whole => format!("↳ {line}. {why}"),
            Detail::Brief => format!("↳ {line}"),
        };
        out += &hanging(label, &paint.dim(label), &text, INDENT, width);
    }
    if let Some(more) = finding.effects.len().checked_sub(EFFECTS_MAX).filter(|more| *more > 0) {
        out += &hanging("", "", &format!("↳ {}", plural(more, "more effect", "more effects")), INDENT, width);
    }
    out
}

fn brief(rank: usize, variant: &VariantFindings<'_>, recurring: &Recurring<'_>, paint: Paint, width: usize) -> String {
    let (finding, wording) = (recurring.finding, recurring.wording());
    let mut out = heading(rank, recurring, &wording, paint, width);
    let mut said = |label: &str, text: &str| out += &hanging(label, &paint.dim(label), text, INDENT, width);
    let mut cost = format!("{} {}", units::percent(finding.cost_share), wording.cost_of);
    cost += &format!(" ({} confidence)", finding.confidence.as_str());
    cost += &variant.recurrence(recurring).map_or(String::new(), |text| format!(", {text}"));
    said("costs", &cost);
    let numbers: Vec<String> = wording.numbers.iter().map(|n| format!("{}: {}", n.name, figure(n))).collect();
    if !numbers.is_empty() {
        said("measured", &numbers.join("; "));
    }
    out += &effects(finding, &wording, Detail::Brief, paint, width);
    out + &fix(finding, &wording, paint, width)
}

fn one(rank: usize, variant: &VariantFindings<'_>, recurring: &Recurring<'_>, paint: Paint, width: usize) -> String {
    let (finding, wording) = (recurring.finding, recurring.wording());
    let mut out = heading(rank, recurring, &wording, paint, width);
    let mut said = |label: &str, text: &str| out += &hanging(label, &paint.dim(label), text, INDENT, width);
    said("costs", &format!("{} {}", units::percent(finding.cost_share), wording.cost_of));
    recurring.period().into_iter().for_each(|period| said("seen in", &period));
    let mut sure = vec![finding.confidence.as_str().to_owned()];
    sure.extend(variant.recurrence(recurring));
    said("confidence", &format!("{}. {}", sure.join(", "), wording.reasons.join(" ")));
    for (index, number) in wording.numbers.iter().enumerate() {
        said(if index == 0 { "measured" } else { "" }, &format!("{}: {}", number.name, figure(number)));
    }
    if let Some(text) = &wording.evidence_text {
        out += &evidence(text, paint, width);
    }
    out + &closing(finding, &wording, paint, width)
}

fn closing(finding: &Finding, wording: &Wording, paint: Paint, width: usize) -> String {
    let mut out = String::new();
    let mut said = |label: &str, text: &str| out += &hanging(label, &paint.dim(label), text, INDENT, width);
    if !finding.exemplars.is_empty() {
        let ids: Vec<&str> = finding.exemplars.iter().take(EXEMPLARS_MAX).map(|e| e.trace_id.as_str()).collect();
        said("traces", &ids.join(", "));
    }
    for (index, text) in wording.ruled_out.iter().enumerate() {
        said(if index == 0 { "ruled out" } else { "" }, text);
    }
    if !wording.falsified_by.is_empty() {
        said("wrong if", &wording.falsified_by);
    }
    wording.caveats.iter().for_each(|caveat| said("caveat", caveat));
    out += &effects(finding, wording, Detail::Whole, paint, width);
    out + &fix(finding, wording, paint, width)
}

/// The advised change and its predicted gain.
fn fix(finding: &Finding, wording: &Wording, paint: Paint, width: usize) -> String {
    let mut out = hanging("try", &paint.green("try"), &wording.advice, INDENT, width);
    for (index, line) in gains(finding).iter().enumerate() {
        let label = if index == 0 { "would gain" } else { "" };
        out += &hanging(label, &paint.green(label), line, INDENT, width);
    }
    out
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
    use narrows_model::prediction::{Change, ChangeKind, Gain, GainOutcome};

    use super::*;
    use crate::fixture::drones;
    use crate::text::Color;

    #[test]
    fn findings_of_many_variants_are_reported_in_brief() {
        let mut outcome = drones::outcome();
        let finding = outcome.findings[0][0].clone();
        let others = (1..6).map(|n| Finding { resource: format!("service {n}"), ..finding.clone() });
        outcome.findings[0].extend(others);
        let text = all(&outcome, Paint(Color::Never), 100);
        assert_eq!((text.matches("   try  ").count(), text.matches("wrong if").count()), (4, 0), "{text}");
        assert!(text.contains("   3 more cost less\n") && text.ends_with("in the page and the JSON.\n"), "{text}");
    }

    #[test]
    fn each_place_is_said_below_its_title() {
        let mut outcome = crate::fixture::outcome();
        let roles = [Role::Invalidates, Role::LimitsReading, Role::CostsMore];
        let template = outcome.findings[0][1].clone();
        let others = roles.map(|role| Finding { role, resource: format!("{role:?}"), ..template.clone() });
        outcome.findings[0].extend(others);
        let text = all(&outcome, Paint(Color::Never), 100);
        let place = |line: &str| text.matches(&format!("\n   {line}\n")).count();
        assert_eq!(place("▶ the narrow place"), 1, "{text}");
        assert_eq!(place("about the experiment: the figures are not the system's"), 1, "{text}");
        assert_eq!(place("about the experiment, not the system"), 1, "{text}");
        assert_eq!(place("costs more than needed; not the bottleneck yet"), 1, "{text}");
    }

    #[test]
    fn many_effects_are_counted() {
        let mut outcome = crate::fixture::outcome();
        let effect = outcome.findings[0][0].effects[0].clone();
        outcome.findings[0][0].effects = vec![effect; EFFECTS_MAX + 3];
        let text = all(&outcome, Paint(Color::Never), 100);
        assert_eq!(text.matches("↳ postgres is saturated").count(), EFFECTS_MAX);
        assert!(text.contains("↳ 3 more effects\n"), "{text}");
    }

    #[test]
    fn what_a_fix_would_gain_follows_what_to_try() {
        let mut outcome = crate::fixture::outcome();
        let gain = |kind| Gain {
            change: Change { kind, target: "shop".into(), amount: None },
            outcome: GainOutcome::NotPredicted("it has no traces".into()),
        };
        let finding = &mut outcome.findings[0][0];
        finding.gain = Some(gain(ChangeKind::JoinQueries));
        let effect = Finding { gain: Some(gain(ChangeKind::AddCpu)), ..finding.effects[0].clone() };
        finding.effects = vec![effect.clone(), effect];
        let text = all(&outcome, Paint(Color::Never), 100);
        let gains = "   would gain  join-queries: not predicted, because it has no traces\n               \
                     add-cpu: not predicted, because it has no traces\n";
        assert_eq!(text.matches(gains).count(), 1, "{text}");
    }

    #[test]
    fn long_source_text_is_cut() {
        let text = "SELECT 1\n".repeat(EVIDENCE_LINES_MAX + 30);
        let shown = evidence(&text, Paint(Color::Never), 80);
        assert_eq!(shown.lines().count(), EVIDENCE_LINES_MAX + 1);
        assert!(shown.ends_with("│ … 30 more lines\n"), "{shown}");
    }
}
