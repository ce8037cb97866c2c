//! The findings as cards, dearest first, each with what it costs, what shows it, what to try, what goes away with it and
//! how to doubt it. The narrow place is marked, and what is about the experiment stands back.

use std::collections::BTreeSet;

use narrows_model::comparison::Outcome;
use narrows_model::finding::{Confidence, Exemplar, Finding, Role, Wording};
use narrows_model::units;

use super::escape::{Esc, cut};
use super::waterfall;
use crate::figures::figure;
use crate::recurring::{self, Recurring, VariantFindings, effect, gains};

/// Cards of one variant at most.
const CARDS_MAX: usize = 20;
/// Cards of the page, about.
const CARDS_TOTAL: usize = 120;
/// Characters of source text at most.
const EVIDENCE_CHARS_MAX: usize = 2000;
/// The most effects in one card.
const EFFECTS_MAX: usize = 12;
/// Exemplars linked from one card at most.
const EXEMPLARS_MAX: usize = 5;

/// The section with all findings. `traces_shown` are the ids of the traces that have a waterfall in the page.
pub(super) fn section(outcome: &Outcome, traces_shown: &BTreeSet<String>) -> String {
    let variants = recurring::by_variant(outcome);
    if variants.is_empty() {
        return String::new();
    }
    let cards_max = (CARDS_TOTAL / variants.len()).clamp(1, CARDS_MAX);
    let cards: String = variants.iter().map(|variant| of_variant(variant, cards_max, traces_shown)).collect();
    format!("<section id=\"findings\"><h2>Findings</h2>{cards}</section>\n")
}

fn of_variant(variant: &VariantFindings<'_>, cards_max: usize, traces_shown: &BTreeSet<String>) -> String {
    let mut out = format!("<h3>{}</h3>", Esc(variant.variant));
    if variant.findings.is_empty() {
        return out + &format!("<p class=\"note\">{}</p>", variant.nothing());
    }
    for recurring in variant.findings.iter().take(cards_max) {
        out += &card(variant, recurring, traces_shown);
    }
    if variant.findings.len() > cards_max {
        out += &format!("<p class=\"note\">{} more findings cost less.</p>", variant.findings.len() - cards_max);
    }
    out
}

fn card(variant: &VariantFindings<'_>, recurring: &Recurring<'_>, traces_shown: &BTreeSet<String>) -> String {
    let (finding, wording) = (recurring.finding, recurring.wording());
    let share = finding.cost_share.clamp(0.0, 1.0) * 100.0;
    let recurrence =
        variant.recurrence(recurring).map_or(String::new(), |text| format!("<span class=\"chip\">{text}</span>"));
    let period = recurring.period();
    let period = period.map_or(String::new(), |text| format!("<span class=\"chip\">seen in {}</span>", Esc(text)));
    format!(
        "<article class=\"card{}\"><header>{}<h4>{}</h4><p class=\"cost\"><span class=\"meter\"><i style=\"width:{share:.1}%\">\
         </i></span><b>{}</b> {}</p><p class=\"chips\">{}<span class=\"chip\">{}</span>{recurrence}{period}</p></header>{}{}\
         <p class=\"try\"><b>Try</b> {}{}</p>{}{}{}</article>\n",
        if recurring.role == Role::NarrowPlace { " narrow" } else { "" },
        place(recurring),
        Esc(&wording.title),
        units::percent(finding.cost_share),
        Esc(&wording.cost_of),
        confidence(finding.confidence),
        Esc(finding.kind().id()),
        evidence(&wording),
        numbers(&wording),
        Esc(&wording.advice),
        would_gain(finding),
        effects(finding, &wording),
        exemplars(&finding.exemplars, traces_shown),
        doubts(&wording)
    )
}

/// Role of the finding in its trial, above its title.
fn place(recurring: &Recurring<'_>) -> String {
    recurring.place().map_or(String::new(), |place| format!("<p class=\"place\">{}</p>", Esc(place)))
}

/// Predicted gains of the changes that the finding suggests, below the advice.
fn would_gain(finding: &Finding) -> String {
    let line = |line: String| format!("<br><b>Would gain</b> {}", Esc(line));
    gains(finding).into_iter().map(line).collect()
}

/// Effects that go away with the finding, in brief.
fn effects(finding: &Finding, wording: &Wording) -> String {
    if finding.effects.is_empty() {
        return String::new();
    }
    let mut items: String = finding
        .effects
        .iter()
        .zip(&wording.effects)
        .take(EFFECTS_MAX)
        .map(|(finding, wording)| effect(finding, wording))
        .map(|(line, why)| format!("<li>{} <small>{}</small></li>", Esc(line), Esc(why)))
        .collect();
    if finding.effects.len() > EFFECTS_MAX {
        items += &format!("<li>{} more</li>", finding.effects.len() - EFFECTS_MAX);
    }
    format!("<div class=\"effects\"><h5>Goes away with it</h5><ul>{items}</ul></div>")
}

fn confidence(confidence: Confidence) -> String {
    let dots = match confidence {
        Confidence::Low => "●○○",
        Confidence::Medium => "●●○",
        Confidence::High => "●●●",
    };
    format!("<span class=\"chip\"><span aria-hidden=\"true\">{dots}</span> {} confidence</span>", confidence.as_str())
}

fn evidence(wording: &Wording) -> String {
    wording
        .evidence_text
        .as_deref()
        .map_or(String::new(), |text| format!("<pre>{}</pre>", Esc(cut(text, EVIDENCE_CHARS_MAX))))
}

fn numbers(wording: &Wording) -> String {
    if wording.numbers.is_empty() {
        return String::new();
    }
    let rows: String = wording
        .numbers
        .iter()
        .map(|number| format!("<div><dt>{}</dt><dd>{}</dd></div>", Esc(&number.name), Esc(figure(number))))
        .collect();
    format!("<dl class=\"numbers\">{rows}</dl>")
}

fn exemplars(exemplars: &[Exemplar], traces_shown: &BTreeSet<String>) -> String {
    if exemplars.is_empty() {
        return String::new();
    }
    let links: Vec<String> = exemplars
        .iter()
        .take(EXEMPLARS_MAX)
        .map(|exemplar| {
            let id = Esc(&exemplar.trace_id);
            if traces_shown.contains(&exemplar.trace_id) {
                format!("<a href=\"#{}\"><code>{id}</code></a>", Esc(waterfall::anchor(&exemplar.trace_id)))
            } else {
                format!("<code>{id}</code>")
            }
        })
        .collect();
    format!("<p class=\"traces\">Seen in trace {}</p>", links.join(", "))
}

/// Reasons, what was ruled out, what would prove it wrong, caveats.
fn doubts(wording: &Wording) -> String {
    let list = |title: &str, items: &[String]| match items {
        [] => String::new(),
        items => {
            let items: String = items.iter().map(|item| format!("<li>{}</li>", Esc(item))).collect();
            format!("<h5>{title}</h5><ul>{items}</ul>")
        }
    };
    let wrong: Vec<String> = [wording.falsified_by.clone()].into_iter().filter(|text| !text.is_empty()).collect();
    let body = [
        list("Why it is believed", &wording.reasons),
        list("Ruled out", &wording.ruled_out),
        list("It would be wrong if this were seen", &wrong),
        list("Keep in mind", &wording.caveats),
    ]
    .concat();
    format!("<div class=\"doubts\">{body}</div>")
}

#[cfg(test)]
mod tests {
    use narrows_model::prediction::{Change, ChangeKind, Gain, GainOutcome};

    use super::*;
    use crate::fixture;

    #[test]
    fn the_narrow_place_is_marked_and_effects_stand_in_its_card() {
        let page = section(&fixture::outcome(), &BTreeSet::new());
        assert_eq!(
            page.matches("<article class=\"card narrow\"><header><p class=\"place\">▶ the narrow place</p>").count(),
            1
        );
        assert_eq!(page.matches("<article class=\"card\">").count(), 1);
        assert!(page.contains("<h5>Goes away with it</h5><ul><li>postgres is saturated: the same queries"), "{page}");
        assert!(page.contains("seen in “8 users”, 1 min 0 s from 10.0 s on"), "{page}");
    }

    #[test]
    fn effects_and_periods_stay_text() {
        let mut outcome = fixture::outcome();
        let evil = "<img src=x onerror=alert(1)>";
        let effect = &mut outcome.findings[0][0].effects[0];
        effect.resource = evil.into();
        effect.operation = Some(evil.into());
        outcome.findings[0][1].period.as_mut().unwrap().label = evil.into();
        outcome.findings[0][1].gain = Some(Gain {
            change: Change { kind: ChangeKind::AddCpu, target: evil.into(), amount: None },
            outcome: GainOutcome::NotPredicted(evil.into()),
        });
        let page = section(&outcome, &BTreeSet::new());
        assert!(!page.contains("<img"));
        assert!(page.contains("<br><b>Would gain</b> add-cpu: not predicted, because &lt;img"), "{page}");
    }

    #[test]
    fn exemplars_link_only_to_what_the_page_has() {
        let outcome = fixture::outcome();
        let id = outcome.findings[0][0].exemplars[0].trace_id.clone();
        let without = section(&outcome, &BTreeSet::new());
        assert!(without.contains(&id) && !without.contains("href="));
        let with = section(&outcome, &BTreeSet::from([id.clone()]));
        assert!(with.contains(&format!("href=\"#trace-{id}\"")));
        assert!(with.contains("<h3>fixed</h3><p class=\"note\">no finding</p>"));
    }
}
