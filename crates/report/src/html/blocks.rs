//! Sections as HTML.

use maud::{Markup, PreEscaped, html};

use super::cut;
use super::{finding, table};
use crate::section::{Bar, BarPart, Bars, Block, Face, Line, Medium, Phrase, Section, Tone};

/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 120;
/// Characters of source text at most.
const SOURCE_CHARS_MAX: usize = 60_000;
/// Least length of a part of a bar, as a share of the longest bar, in which a number has room.
const ROOM_FOR_NUMBER: f64 = 0.09;

pub(crate) fn section(section: &Section) -> Markup {
    let anchor = (!section.anchor.is_empty()).then_some(section.anchor.as_str());
    html! {
        section id=[anchor] {
            @if !section.title.is_empty() { h2 { (section.title) } }
            (blocks(&section.blocks))
        }
        "\n"
    }
}

fn blocks(blocks: &[Block]) -> Markup {
    html! { @for block in blocks { (of_block(block)) } }
}

fn of_block(block: &Block) -> Markup {
    match block {
        Block::Heading(phrase) => html! { h3 { (inline(phrase)) } },
        Block::Paragraph(phrase, tone) => html! { p class=[class(*tone)] { (inline(phrase)) } },
        Block::Note(phrase) => html! { p.note { (inline(phrase)) } },
        Block::Lines(lines) => html! { ul.lines { @for line in lines { (labelled(line)) } } },
        Block::Items(items) => html! { ul { @for item in items { li { (inline(item)) } } } },
        Block::Table(one) => table::table(one),
        Block::Bars(one) => bars(one),
        Block::Finding(card) => finding::card(card),
        Block::Source(text) => html! { pre { (cut(text, SOURCE_CHARS_MAX)) } },
        Block::Fold(title, inner) => html! { details.source open { summary { (title) } (blocks(inner)) } },
        Block::Drawing(drawing) => PreEscaped(drawing.0.clone()),
        Block::Only(Medium::Page, inner) => blocks(inner),
        Block::Only(Medium::Terminal, _) => PreEscaped(String::new()),
    }
}

/// Class of a tone; `None` for plain text.
pub(super) fn class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Soft => Some("same"),
        Tone::Strong => Some("strong"),
        Tone::Good => Some("better"),
        Tone::Bad => Some("bad"),
        Tone::Doubtful => Some("doubtful"),
    }
}

pub(crate) fn inline(phrase: &Phrase) -> Markup {
    html! {
        @for (face, text) in &phrase.parts {
            @match face {
                Face::Plain => (text),
                Face::Strong => b { (text) },
                Face::Slanted => i { (text) },
                Face::Code => code { (text) },
                Face::Small => small { (text) },
            }
        }
    }
}

fn labelled(line: &Line) -> Markup {
    html! {
        li {
            @if !line.label.is_empty() { span class={ "label " (class(line.tone).unwrap_or_default()) } { (line.label) } " " }
            @if !line.subject.is_empty() { b { (cut(&line.subject, NAME_CHARS_MAX)) } " " }
            (line.text)
        }
    }
}

fn bars(bars: &Bars) -> Markup {
    html! {
        h3 { (inline(&bars.title)) }
        div.spent { @for row in &bars.rows { (bar(row)) } }
        ul.legend.parts {
            @for (colour, name) in &bars.legend { li class=(colour) { span { (cut(name, NAME_CHARS_MAX)) } } }
        }
    }
}

fn bar(bar: &Bar) -> Markup {
    html! {
        span { (cut(&bar.name, NAME_CHARS_MAX)) }
        div.stack { @for part in &bar.parts { (bar_part(part)) } }
        span.n { (bar.total) }
    }
}

fn bar_part(part: &BarPart) -> Markup {
    let width = format!("width:{:.2}%", part.length * 100.0);
    let title = format!("{}: {}", cut(&part.name, NAME_CHARS_MAX), part.detail);
    html! {
        i class=(part.colour) style=(width) title=(title) {
            @if part.length >= ROOM_FOR_NUMBER { b { (part.label) } }
        }
    }
}
