//! The findings of each variant, those that cost most first.

use narrows_model::comparison::Outcome;

use super::Context;
use crate::figures::{figure, plural};
use crate::html::waterfall_anchor;
use crate::recurring::{self, RecurringFinding, VariantFindings, effect, gains};
use crate::section::{Block, Card, Detail, Medium, Phrase, Section, Tone, TraceLink};

/// Of more variants than this, the terminal reports findings in brief.
const WHOLE_VARIANTS_MAX: usize = 2;
/// Findings of one variant that are reported in brief.
const BRIEF_MAX: usize = 3;
/// Findings of one variant at most.
const FINDINGS_MAX: usize = 20;
/// Findings of all variants, about.
const FINDINGS_TOTAL: usize = 120;

/// The findings; without blocks if the run has no trial.
pub(super) fn section(context: &Context<'_>) -> Section {
    let variants = recurring::by_variant(context.outcome);
    let detail = if variants.len() > WHOLE_VARIANTS_MAX { Detail::Brief } else { Detail::Whole };
    let most = match (context.medium, detail) {
        (Medium::Page, _) => (FINDINGS_TOTAL / variants.len().max(1)).clamp(1, FINDINGS_MAX),
        (Medium::Terminal, Detail::Brief) => BRIEF_MAX,
        (Medium::Terminal, Detail::Whole) => usize::MAX,
    };
    let traces = context.requests.iter().map(|request| request.trace_id()).collect();
    let source = Source { detail, most, traces };
    let mut blocks: Vec<Block> = variants.iter().flat_map(|variant| source.of_variant(variant)).collect();
    if !blocks.is_empty() {
        let sentence = Block::Paragraph(Phrase::from(&context.outcome.sentence), Tone::Plain);
        blocks.insert(0, Block::Only(Medium::Page, vec![sentence]));
    }
    if detail == Detail::Brief && has_findings(context.outcome) {
        let rest = "Reasons, what was ruled out, what would prove a finding wrong: in the page and the JSON.";
        blocks.push(Block::Only(Medium::Terminal, vec![Block::Note(Phrase::from(rest))]));
    }
    Section::new("findings", "Findings", blocks)
}

fn has_findings(outcome: &Outcome) -> bool {
    outcome.findings.iter().any(|findings| !findings.is_empty())
}

/// Inputs of the cards.
struct Source {
    detail: Detail,
    /// Findings of a variant at most.
    most: usize,
    /// Traces that the page draws.
    traces: Vec<String>,
}

impl Source {
    fn of_variant(&self, variant: &VariantFindings<'_>) -> Vec<Block> {
        let count = variant.findings.len();
        let state = match count {
            0 => variant.nothing().to_owned(),
            count => plural(count, "finding", "findings"),
        };
        let mut blocks = vec![Block::Heading(Phrase::default().strong(variant.variant).plain(format!(": {state}")))];
        for (at, recurring) in variant.findings.iter().take(self.most).enumerate() {
            blocks.push(Block::Finding(Box::new(self.card(at + 1, variant, recurring))));
        }
        if count > self.most {
            let more = format!("{} less", plural(count - self.most, "more costs", "more cost"));
            blocks.push(Block::Note(Phrase::from(more)));
        }
        blocks
    }

    fn card(&self, rank: usize, variant: &VariantFindings<'_>, recurring: &RecurringFinding<'_>) -> Card {
        let (finding, wording) = (recurring.finding, recurring.wording());
        let effects = finding.effects.iter().zip(&wording.effects).map(|(finding, wording)| effect(finding, wording));
        Card {
            detail: self.detail,
            rank,
            role: recurring.role,
            place: recurring.place(),
            kind: finding.kind().id(),
            cost_share: finding.cost_share,
            confidence: finding.confidence,
            recurrence: variant.recurrence(recurring),
            period: recurring.period(),
            figures: wording.numbers.iter().map(|number| (number.name.clone(), figure(number))).collect(),
            traces: finding.exemplars.iter().map(|exemplar| self.link(&exemplar.trace_id)).collect(),
            effects: effects.collect(),
            gains: gains(finding),
            title: wording.title,
            cost_of: wording.cost_of,
            reasons: wording.reasons,
            evidence: wording.evidence_text,
            ruled_out: wording.ruled_out,
            wrong_if: wording.falsified_by,
            caveats: wording.caveats,
            advice: wording.advice,
        }
    }

    fn link(&self, id: &str) -> TraceLink {
        let is_drawn = self.traces.iter().any(|drawn| drawn == id);
        TraceLink { id: id.to_owned(), anchor: is_drawn.then(|| waterfall_anchor(id)) }
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::{Finding, Role};
    use narrows_model::prediction::{Change, ChangeKind, Gain, GainOutcome};

    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture::{self, drones};

    fn not_predicted(kind: ChangeKind, target: &str, because: &str) -> Gain {
        let change = Change { kind, target: target.into(), amount: None };
        Gain { change, outcome: GainOutcome::NotPredicted(because.into()) }
    }

    #[test]
    fn findings_of_many_variants_are_reported_in_brief() {
        let mut outcome = drones::outcome();
        let finding = outcome.findings[0][0].clone();
        let others = (1..6).map(|n| Finding { resource: format!("service {n}"), ..finding.clone() });
        outcome.findings[0].extend(others);
        let text = in_terminal(section, &outcome, 100);
        assert_eq!((text.matches("   try  ").count(), text.matches("wrong if").count()), (4, 0), "{text}");
        assert!(text.contains("3 more cost less\n") && text.ends_with("in the page and the JSON.\n"), "{text}");
    }

    #[test]
    fn each_place_is_said_below_its_title() {
        let mut outcome = fixture::outcome();
        let roles = [Role::Invalidates, Role::LimitsReading, Role::CostsMore];
        let template = outcome.findings[0][1].clone();
        let others = roles.map(|role| Finding { role, resource: format!("{role:?}"), ..template.clone() });
        outcome.findings[0].extend(others);
        let text = in_terminal(section, &outcome, 100);
        let place = |line: &str| text.matches(&format!("\n   {line}\n")).count();
        assert_eq!(place("▶ the narrow place"), 1, "{text}");
        assert_eq!(place("about the experiment: the figures are not the system's"), 1, "{text}");
        assert_eq!(place("about the experiment, not the system"), 1, "{text}");
        assert_eq!(place("costs more than needed; not the bottleneck yet"), 1, "{text}");
    }

    #[test]
    fn many_effects_are_counted() {
        let mut outcome = fixture::outcome();
        let effect = outcome.findings[0][0].effects[0].clone();
        outcome.findings[0][0].effects = vec![effect; 9];
        let text = in_terminal(section, &outcome, 100);
        assert_eq!(text.matches("↳ postgres is saturated").count(), 6);
        assert!(text.contains("↳ 3 more effects\n"), "{text}");
    }

    #[test]
    fn predicted_gains_follow_the_advice() {
        let mut outcome = fixture::outcome();
        let finding = &mut outcome.findings[0][0];
        finding.gain = Some(not_predicted(ChangeKind::JoinQueries, "shop", "it has no traces"));
        let gain = Some(not_predicted(ChangeKind::AddCpu, "shop", "it has no traces"));
        let effect = Finding { gain, ..finding.effects[0].clone() };
        finding.effects = vec![effect.clone(), effect];
        let text = in_terminal(section, &outcome, 100);
        let gains = "   would gain  join-queries: not predicted, because it has no traces\n               \
                     add-cpu: not predicted, because it has no traces\n";
        assert_eq!(text.matches(gains).count(), 1, "{text}");
    }

    #[test]
    fn the_narrow_place_is_marked_and_effects_stand_in_its_card() {
        let page = in_page(section, &fixture::outcome());
        let narrow = "<article class=\"card narrow\"><header><p class=\"place\">▶ the narrow place</p>";
        assert_eq!(page.matches(narrow).count(), 1, "{page}");
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
        outcome.findings[0][1].gain = Some(not_predicted(ChangeKind::AddCpu, evil, evil));
        let page = in_page(section, &outcome);
        assert!(!page.contains("<img"));
        assert!(page.contains("<br><b>Would gain</b> add-cpu: not predicted, because &lt;img"), "{page}");
    }

    #[test]
    fn traces_link_only_to_waterfalls_of_the_page() {
        let outcome = fixture::outcome();
        let id = outcome.findings[0][0].exemplars[0].trace_id.clone();
        let with = in_page(section, &outcome);
        assert!(with.contains(&format!("href=\"#trace-{id}\"")), "{with}");
        let mut context = Context::for_page(&outcome);
        context.requests.clear();
        let without = crate::html::plain(&section(&context));
        assert!(without.contains(&id) && !without.contains("href="), "{without}");
        assert!(with.contains("<h3><b>fixed</b>: no finding</h3>"), "{with}");
    }
}
