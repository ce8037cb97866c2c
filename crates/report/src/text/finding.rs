//! A finding in the terminal.
//!
//! Query text keeps its lines. The narrow place is marked, and so is a finding about the experiment; effects stand in brief
//! below their cause.

use narrows_model::finding::Role;
use narrows_model::units;

use super::paint::{Paint, clean, hanging, wrap};
use crate::figures::plural;
use crate::section::{Card, Detail};

/// Left edge of the text about a finding.
const INDENT: usize = 3;
/// Lines of source text shown for one finding.
const EVIDENCE_LINES_MAX: usize = 12;
/// Effects shown below one finding.
const EFFECTS_MAX: usize = 6;
/// Trace ids shown for one finding.
const EXEMPLARS_MAX: usize = 3;

/// The finding. Ends with a line feed.
pub(super) fn text(card: &Card, paint: Paint, width: usize) -> String {
    let mut out = Out { text: heading(card, paint, width), paint, width };
    match card.detail {
        Detail::Whole => whole(card, &mut out),
        Detail::Brief => brief(card, &mut out),
    }
    out.effects(card);
    out.fix(card);
    out.text
}

/// The title, and below it the role of the finding in its trial.
fn heading(card: &Card, paint: Paint, width: usize) -> String {
    let lines = wrap(&clean(&card.title), width - INDENT);
    let lead = |at: usize| if at == 0 { format!("{:<INDENT$}", card.rank) } else { " ".repeat(INDENT) };
    let title = lines.iter().enumerate().map(|(at, line)| format!("{}{}\n", lead(at), paint.bold(line)));
    let place = card.place.map_or(String::new(), |place| {
        let painted = match card.role {
            Role::NarrowPlace => paint.green(place),
            Role::Invalidates => paint.red(place),
            _ => paint.dim(place),
        };
        format!("{}{painted}\n", " ".repeat(INDENT))
    });
    title.collect::<String>() + &place
}

fn brief(card: &Card, out: &mut Out) {
    let recurrence = card.recurrence.as_ref().map_or(String::new(), |text| format!(", {text}"));
    out.fact("costs", &format!("{} ({} confidence){recurrence}", cost(card), card.confidence.as_str()));
    let figures: Vec<String> = card.figures.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    if !figures.is_empty() {
        out.fact("measured", &figures.join("; "));
    }
}

fn whole(card: &Card, out: &mut Out) {
    out.fact("costs", &cost(card));
    card.period.iter().for_each(|period| out.fact("seen in", period));
    let mut sure = vec![card.confidence.as_str()];
    sure.extend(card.recurrence.as_deref());
    out.fact("confidence", &format!("{}. {}", sure.join(", "), card.reasons.join(" ")));
    out.list("measured", card.figures.iter().map(|(name, value)| format!("{name}: {value}")));
    card.evidence.iter().for_each(|text| out.evidence(text));
    if !card.traces.is_empty() {
        let ids: Vec<&str> = card.traces.iter().take(EXEMPLARS_MAX).map(|trace| trace.id.as_str()).collect();
        out.fact("traces", &ids.join(", "));
    }
    out.list("ruled out", card.ruled_out.iter().cloned());
    if !card.wrong_if.is_empty() {
        out.fact("wrong if", &card.wrong_if);
    }
    card.caveats.iter().for_each(|caveat| out.fact("caveat", caveat));
}

fn cost(card: &Card) -> String {
    format!("{} {}", units::percent(card.cost_share), card.cost_of)
}

/// Text in the making.
struct Out {
    text: String,
    paint: Paint,
    width: usize,
}

impl Out {
    fn fact(&mut self, label: &str, text: &str) {
        self.text += &hanging(label, &self.paint.dim(label), text, INDENT, self.width);
    }

    fn advice(&mut self, label: &str, text: &str) {
        self.text += &hanging(label, &self.paint.green(label), text, INDENT, self.width);
    }

    /// Facts of one kind; the label stands before the first.
    fn list(&mut self, label: &str, texts: impl Iterator<Item = String>) {
        texts.enumerate().for_each(|(at, text)| self.fact(if at == 0 { label } else { "" }, &text));
    }

    fn evidence(&mut self, text: &str) {
        let lines: Vec<String> = text.lines().flat_map(|line| wrap(&clean(line), self.width - INDENT - 2)).collect();
        let bar = self.paint.dim("│");
        for line in lines.iter().take(EVIDENCE_LINES_MAX) {
            self.text += &format!("{}{bar} {line}\n", " ".repeat(INDENT));
        }
        if lines.len() > EVIDENCE_LINES_MAX {
            let rest = plural(lines.len() - EVIDENCE_LINES_MAX, "more line", "more lines");
            self.text += &format!("{}{bar} … {rest}\n", " ".repeat(INDENT));
        }
    }

    /// Effects that go away with the finding.
    fn effects(&mut self, card: &Card) {
        let shown = card.effects.iter().take(EFFECTS_MAX).map(|(line, why)| match card.detail {
            Detail::Whole => format!("↳ {line}. {why}"),
            Detail::Brief => format!("↳ {line}"),
        });
        let more = card.effects.len().saturating_sub(EFFECTS_MAX);
        let more = (more > 0).then(|| format!("↳ {}", plural(more, "more effect", "more effects")));
        self.list("effects", shown.chain(more));
    }

    /// The advised change and its predicted gain.
    fn fix(&mut self, card: &Card) {
        self.advice("try", &card.advice);
        for (at, line) in card.gains.iter().enumerate() {
            self.advice(if at == 0 { "would gain" } else { "" }, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Color;

    #[test]
    fn long_source_text_is_cut() {
        let mut out = Out { text: String::new(), paint: Paint(Color::Never), width: 80 };
        out.evidence(&"SELECT 1\n".repeat(EVIDENCE_LINES_MAX + 30));
        assert_eq!(out.text.lines().count(), EVIDENCE_LINES_MAX + 1);
        assert!(out.text.ends_with("│ … 30 more lines\n"), "{}", out.text);
    }
}
