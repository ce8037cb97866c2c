//! A finding as a card: its cost, what shows it, what to try, what goes away with it and how to doubt it. The narrow place is
//! marked.

use maud::{Markup, html};
use narrows_model::finding::{Confidence, Role};
use narrows_model::units;

use super::cut;
use crate::section::{Card, TraceLink};

/// Characters of source text at most.
const EVIDENCE_CHARS_MAX: usize = 2000;
/// The most effects in one card.
const EFFECTS_MAX: usize = 12;
/// Traces linked from one card at most.
const TRACES_MAX: usize = 5;

pub(super) fn card(card: &Card) -> Markup {
    html! {
        article.card.narrow[card.role == Role::NarrowPlace] {
            header {
                @if let Some(place) = card.place { p.place { (place) } }
                h4 { (card.title) }
                (cost(card))
                (chips(card))
            }
            @if let Some(text) = &card.evidence { pre { (cut(text, EVIDENCE_CHARS_MAX)) } }
            @if !card.figures.is_empty() {
                dl.numbers { @for (name, value) in &card.figures { div { dt { (name) } dd { (value) } } } }
            }
            p.try {
                b { "Try" } " " (card.advice)
                @for gain in &card.gains { br; b { "Would gain" } " " (gain) }
            }
            @if !card.effects.is_empty() { (effects(card)) }
            @if !card.traces.is_empty() { (traces(&card.traces)) }
            (doubts(card))
        }
        "\n"
    }
}

fn cost(card: &Card) -> Markup {
    let width = format!("width:{:.1}%", card.cost_share.clamp(0.0, 1.0) * 100.0);
    html! {
        p.cost {
            span.meter { i style=(width) {} }
            b { (units::percent(card.cost_share)) } " " (card.cost_of)
        }
    }
}

fn chips(card: &Card) -> Markup {
    let dots = match card.confidence {
        Confidence::Low => "●○○",
        Confidence::Medium => "●●○",
        Confidence::High => "●●●",
    };
    html! {
        p.chips {
            span.chip { span aria-hidden="true" { (dots) } " " (card.confidence.as_str()) " confidence" }
            span.chip { (card.kind) }
            @if let Some(recurrence) = &card.recurrence { span.chip { (recurrence) } }
            @if let Some(period) = &card.period { span.chip { "seen in " (period) } }
        }
    }
}

fn effects(card: &Card) -> Markup {
    let more = card.effects.len().saturating_sub(EFFECTS_MAX);
    html! {
        div.effects {
            h5 { "Goes away with it" }
            ul {
                @for (line, why) in card.effects.iter().take(EFFECTS_MAX) { li { (line) " " small { (why) } } }
                @if more > 0 { li { (more) " more" } }
            }
        }
    }
}

fn traces(traces: &[TraceLink]) -> Markup {
    html! {
        p.traces {
            "Seen in trace "
            @for (at, trace) in traces.iter().take(TRACES_MAX).enumerate() {
                @if at > 0 { ", " }
                @match &trace.anchor {
                    Some(anchor) => a href={ "#" (anchor) } { code { (trace.id) } },
                    None => code { (trace.id) },
                }
            }
        }
    }
}

/// Reasons, what was ruled out, what would prove it wrong, caveats.
fn doubts(card: &Card) -> Markup {
    let wrong: &[String] = if card.wrong_if.is_empty() { &[] } else { std::slice::from_ref(&card.wrong_if) };
    let lists: [(&str, &[String]); 4] = [
        ("Why it is believed", &card.reasons),
        ("Ruled out", &card.ruled_out),
        ("It would be wrong if this were seen", wrong),
        ("Keep in mind", &card.caveats),
    ];
    html! {
        div.doubts {
            @for (title, items) in lists {
                @if !items.is_empty() { h5 { (title) } ul { @for item in items { li { (item) } } } }
            }
        }
    }
}
