//! Sections in the terminal: one column of plain text.

use super::paint::{Paint, clean, hanging, wrap};
use super::{finding, grid};
use crate::section::{Bars, Block, Detail, Line, Medium, Section, Tone};

/// Parts of a bar that are named at most.
const PARTS_MAX: usize = 4;
/// Least share of a part that is named.
const PART_SHARE_MIN: f64 = 0.005;

/// Sections that are not empty, with an empty line between them.
pub(crate) fn sections(sections: &[Section], paint: Paint, width: usize) -> String {
    let texts = sections.iter().map(|section| blocks(&section.blocks, paint, width));
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

pub(super) fn blocks(blocks: &[Block], paint: Paint, width: usize) -> String {
    let mut shown = Vec::new();
    flatten(blocks, &mut shown);
    let mut out = String::new();
    let mut before: Option<&Block> = None;
    for block in shown {
        let text = of_block(block, paint, width);
        if text.is_empty() {
            continue;
        }
        if before.is_some_and(|before| is_apart(before, block)) {
            out.push('\n');
        }
        out += &text;
        before = Some(block);
    }
    out
}

/// The blocks that a terminal shows.
fn flatten<'a>(blocks: &'a [Block], shown: &mut Vec<&'a Block>) {
    for block in blocks {
        match block {
            Block::Only(Medium::Terminal, blocks) | Block::Fold(_, blocks) => flatten(blocks, shown),
            Block::Only(Medium::Page, _) | Block::Drawing(_) => {}
            block => shown.push(block),
        }
    }
}

/// Whether an empty line stands between two blocks.
fn is_apart(before: &Block, block: &Block) -> bool {
    match (before, block) {
        (Block::Heading(_) | Block::Finding(_), Block::Finding(card)) => card.detail == Detail::Whole,
        (Block::Heading(_), Block::Heading(_)) => true,
        (Block::Heading(_) | Block::Note(_), _) | (_, Block::Note(_)) | (Block::Lines(_), Block::Lines(_)) => false,
        _ => true,
    }
}

fn of_block(block: &Block, paint: Paint, width: usize) -> String {
    match block {
        Block::Heading(phrase) => lines(&phrase.text(), Tone::Strong, paint, width),
        Block::Paragraph(phrase, tone) => lines(&phrase.text(), *tone, paint, width),
        Block::Note(phrase) => lines(&phrase.text(), Tone::Soft, paint, width),
        Block::Lines(all) => all.iter().map(|line| labelled(line, paint, width)).collect(),
        Block::Items(items) => items.iter().map(|item| bullet(&item.text(), width)).collect(),
        Block::Table(table) => grid::table(table, paint, width),
        Block::Bars(all) => bars(all, paint, width),
        Block::Finding(card) => finding::text(card, paint, width),
        Block::Source(text) => text.lines().map(|line| format!("{}\n", clean(line))).collect(),
        Block::Only(..) | Block::Fold(..) | Block::Drawing(_) => String::new(),
    }
}

fn lines(text: &str, tone: Tone, paint: Paint, width: usize) -> String {
    wrap(&clean(text), width).iter().map(|line| format!("{}\n", paint.tone(tone, line))).collect()
}

fn labelled(line: &Line, paint: Paint, width: usize) -> String {
    let text = match (line.subject.as_str(), line.text.as_str()) {
        (subject, "") => subject.to_owned(),
        ("", text) => text.to_owned(),
        (subject, text) => format!("{subject}: {text}"),
    };
    hanging(&line.label, &paint.tone(line.tone, &line.label), &text, 0, width)
}

fn bullet(text: &str, width: usize) -> String {
    format!("- {}\n", wrap(&clean(text), width - 2).join("\n  "))
}

/// A line for each bar, with its largest parts.
fn bars(bars: &Bars, paint: Paint, width: usize) -> String {
    let mut out = lines(&bars.title.text(), Tone::Strong, paint, width);
    for bar in &bars.rows {
        let mut parts: Vec<_> = bar.parts.iter().filter(|part| part.share >= PART_SHARE_MIN).collect();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        let parts: Vec<String> =
            parts.iter().take(PARTS_MAX).map(|part| format!("{} {}", part.name, part.label)).collect();
        let text = format!("{} {}: {}", bar.name, bar.total, parts.join(", "));
        out += &hanging("time", &paint.dim("time"), &text, 0, width);
    }
    out
}
