//! Sections as Markdown, as GitHub and others read it.

use narrows_model::printable::is_obeyed;

use crate::measures;
use crate::section::{Align, Bars, Block, Card, Cell, Column, Face, Figure, Line, Phrase, Row, Section, Table};

/// Text of a figure that is not known.
const UNKNOWN: &str = "–";

/// Sections with headings of a level, from 1. Ends with a line feed.
pub(crate) fn sections(sections: &[Section], level: usize) -> String {
    let mut blocks = Vec::new();
    for section in sections {
        if !section.title.is_empty() {
            blocks.push(format!("{} {}\n", "#".repeat(level), escaped(&section.title)));
        }
        blocks.extend(section.blocks.iter().map(block));
    }
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n")
}

/// Text in which nothing is markup, on one line.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("<br>"),
            '<' => out.push_str("&lt;"),
            '|' | '\\' | '*' | '_' | '`' | '[' | ']' | '#' => out.extend(['\\', c]),
            c if is_obeyed(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(phrase) | Block::Paragraph(phrase, _) | Block::Note(phrase) => format!("{}\n", inline(phrase)),
        Block::Lines(lines) => lines.iter().map(line).collect(),
        Block::Items(items) => items.iter().map(|item| format!("- {}\n", inline(item))).collect(),
        Block::Table(one) => table(one),
        Block::Bars(one) => bars(one),
        Block::Finding(card) => finding(card),
        Block::Source(text) => fenced(text),
        Block::Fold(_, blocks) => blocks.iter().map(self::block).collect::<Vec<_>>().join("\n"),
        Block::Drawing(_) | Block::Only(..) => String::new(),
    }
}

fn inline(phrase: &Phrase) -> String {
    let part = |(face, text): &(Face, String)| match face {
        Face::Plain | Face::Small => escaped(text),
        Face::Strong => format!("**{}**", escaped(text)),
        Face::Slanted => format!("*{}*", escaped(text)),
        Face::Code => code(text),
    };
    phrase.parts.iter().map(part).collect()
}

fn code(text: &str) -> String {
    format!("`{}`", text.replace(|c: char| c == '`' || is_obeyed(c), " ").replace('|', "\\|"))
}

fn line(line: &Line) -> String {
    let subject = if line.subject.is_empty() { String::new() } else { format!(" {}:", escaped(&line.subject)) };
    format!("- **{}**{subject} {}\n", escaped(line.label.trim()), escaped(&line.text))
}

/// Indented, so that no fence of the text ends it.
fn fenced(text: &str) -> String {
    text.lines().map(|line| format!("    {}\n", line.replace(is_obeyed, " "))).collect()
}

/// A table; the titles of groups stand in rows of their own.
pub(crate) fn table(table: &Table) -> String {
    let is_faced = is_faced(table);
    let header = row(table.columns.iter().map(|column| header(column, is_faced)));
    let rule = |column: &Column| if column.align == Align::Right { "---:" } else { "---" }.to_owned();
    let mut out = header + &format!("|{}|\n", table.columns.iter().map(rule).collect::<Vec<_>>().join("|"));
    for group in &table.groups {
        out += &group.title.as_ref().map_or(String::new(), |title| row(std::iter::once(inline(title))));
        out += &group.rows.iter().map(|one| row(one.cells.iter().map(|one| cell(one, is_faced)))).collect::<String>();
    }
    let remarked: Vec<&Row> =
        table.groups.iter().flat_map(|group| &group.rows).filter(|row| !row.remark.is_empty()).collect();
    let remark = |row: &&Row| {
        format!("- {}: {}\n", row.cells.first().map_or(String::new(), |one| cell(one, is_faced)), escaped(&row.remark))
    };
    if remarked.is_empty() { out } else { format!("{out}\n{}", remarked.iter().map(remark).collect::<String>()) }
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// Whether the figures of pairs stand below each other with faces: an arrow has no room for small print.
fn is_faced(table: &Table) -> bool {
    let has_details = |figure: &Figure| !figure.small.is_empty() || !figure.standing.is_free();
    let cells = table.groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.cells);
    cells.into_iter().any(|cell| matches!(cell, Cell::Pair(first, second) if has_details(first) || has_details(second)))
}

fn header(column: &Column, is_faced: bool) -> String {
    match column.pair {
        Some([first, second]) if !is_faced => format!("{}, {first} → {second}", escaped(&column.name)),
        _ => escaped(&column.name),
    }
}

fn cell(cell: &Cell, is_faced: bool) -> String {
    match cell {
        Cell::One(one) => figure(one),
        Cell::Pair(first, second) if !is_faced => format!("{} → {}", figure(first), figure(second)),
        Cell::Pair(first, second) => {
            let faced = |one: &Figure, face: &str| match one.text.as_str() {
                "" | UNKNOWN => None,
                _ => Some(format!("{face}{}{face}", figure(one))),
            };
            let standing = [first, second].into_iter().find_map(|one| measures::standing(&one.standing));
            let standing = standing.map(|(word, by)| format!("*{word}:* {}", escaped(by)));
            let range = Some(escaped(&second.range)).filter(|range| !range.is_empty());
            let lines = [faced(first, "*"), faced(second, "**"), range, standing];
            lines.into_iter().flatten().collect::<Vec<_>>().join("<br>")
        }
    }
}

fn figure(figure: &Figure) -> String {
    let text = escaped(&figure.text);
    let text = match figure {
        Figure { is_code: true, text, .. } => code(text),
        Figure { is_strong: true, .. } => format!("**{text}**"),
        Figure { is_link: true, .. } => format!("[{text}](#{text})"),
        _ => text,
    };
    if figure.small.is_empty() { text } else { format!("{text} ({})", escaped(&figure.small)) }
}

fn bars(bars: &Bars) -> String {
    let rows = bars.rows.iter().map(|bar| {
        let parts = bar.parts.iter().map(|part| format!("{} {}", escaped(&part.name), escaped(&part.label)));
        format!("- {} {}: {}\n", escaped(&bar.name), escaped(&bar.total), parts.collect::<Vec<_>>().join(", "))
    });
    format!("{}\n\n{}", inline(&bars.title), rows.collect::<String>())
}

fn finding(card: &Card) -> String {
    let cost = format!("{} {}", narrows_model::units::percent(card.cost_share), card.cost_of);
    let place = card.place.map_or(String::new(), |place| format!(" ({})", escaped(place)));
    let gains: String = card.gains.iter().map(|gain| format!("   Would gain: {}\n", escaped(gain))).collect();
    format!(
        "{}. **{}**{place}\n   Costs {}, {} confidence.\n   Try: {}\n{gains}",
        card.rank,
        escaped(&card.title),
        escaped(&cost),
        card.confidence.as_str(),
        escaped(&card.advice)
    )
}
