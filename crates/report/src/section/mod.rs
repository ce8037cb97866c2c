//! A report as data: a list of sections, each built once from an outcome, a check or the like.
//!
//! Terminal text, HTML and Markdown are renderers of sections. No renderer knows the subject of a section, and no section
//! knows how it is written. A block that suits one medium only says so with [`Block::Only`].

mod phrase;
mod table;

use maud::Markup;
use narrows_model::finding::{Confidence, Role};

pub(crate) use phrase::{Face, Phrase};
pub(crate) use table::{Align, Cell, Column, Figure, Group, Row, SmallPrint, Table};

/// Part of a report with one subject.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// Anchor in a page; empty without one.
    pub(crate) anchor: String,
    /// Heading; the terminal shows none, since its blocks name their subject themselves.
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
}

impl Section {
    pub(crate) fn new(anchor: impl Into<String>, title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { anchor: anchor.into(), title: title.into(), blocks }
    }

    /// A section without a heading.
    pub(crate) fn untitled(blocks: Vec<Block>) -> Self {
        Self { blocks, ..Self::default() }
    }
}

/// Piece of a section.
#[derive(Debug)]
pub(crate) enum Block {
    /// Heading below that of the section.
    Heading(Phrase),
    Paragraph(Phrase, Tone),
    /// Small print; the terminal sets it directly below the block before.
    Note(Phrase),
    /// Facts behind labels.
    Lines(Vec<Line>),
    Items(Vec<Phrase>),
    Table(Table),
    Bars(Bars),
    Finding(Box<Card>),
    /// Source text, as it is.
    Source(String),
    /// Blocks that a page shows on request.
    Fold(String, Vec<Block>),
    /// Graphics, which only a page has.
    Drawing(Markup),
    /// Blocks for one medium.
    Only(Medium, Vec<Block>),
}

/// Medium of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    Terminal,
    Page,
}

/// Meaning that colour gives to text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    /// Stands back.
    Soft,
    Strong,
    Good,
    Bad,
    Doubtful,
}

/// A fact behind a label.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) tone: Tone,
    /// Subject of the fact, such as a variant; empty without one.
    pub(crate) subject: String,
    pub(crate) text: String,
}

impl Line {
    pub(crate) fn new(label: impl Into<String>, subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), tone: Tone::Soft, subject: subject.into(), text: text.into() }
    }

    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

/// Bars cut into parts, on one scale.
#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) title: Phrase,
    pub(crate) rows: Vec<Bar>,
    /// Class of the colour, and name, of each part.
    pub(crate) legend: Vec<(String, String)>,
}

/// One bar.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// Length of the bar in words.
    pub(crate) total: String,
    pub(crate) parts: Vec<BarPart>,
}

/// A part of a bar.
#[derive(Debug)]
pub(crate) struct BarPart {
    pub(crate) name: String,
    /// Style sheet's class of its colour.
    pub(crate) colour: String,
    /// Length as a share of the longest bar, 0 to 1.
    pub(crate) length: f64,
    /// Share of its bar, 0 to 1.
    pub(crate) share: f64,
    /// Figure shown where it fits.
    pub(crate) label: String,
    /// Figures on hover.
    pub(crate) detail: String,
}

/// Level of detail about a finding in the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Whole,
    /// Its cost, its figures and the advice.
    Brief,
}

/// A finding.
#[derive(Debug)]
pub(crate) struct Card {
    pub(crate) detail: Detail,
    /// Position among the findings of its variant, from 1.
    pub(crate) rank: usize,
    pub(crate) role: Role,
    /// Role in words, if it has to be stated.
    pub(crate) place: Option<&'static str>,
    pub(crate) title: String,
    pub(crate) kind: &'static str,
    /// Share that the cause costs, 0 to 1.
    pub(crate) cost_share: f64,
    /// Base of that share: `of the latency of GET /orders`.
    pub(crate) cost_of: String,
    pub(crate) confidence: Confidence,
    /// `seen in 2 of 3 repetitions`.
    pub(crate) recurrence: Option<String>,
    /// Part of the trial that it was seen in.
    pub(crate) period: Option<String>,
    pub(crate) reasons: Vec<String>,
    /// Name and value of each figure.
    pub(crate) figures: Vec<(String, String)>,
    pub(crate) evidence: Option<String>,
    pub(crate) traces: Vec<TraceLink>,
    pub(crate) ruled_out: Vec<String>,
    pub(crate) wrong_if: String,
    pub(crate) caveats: Vec<String>,
    /// Each effect in one line, and why it is one.
    pub(crate) effects: Vec<(String, String)>,
    pub(crate) advice: String,
    pub(crate) gains: Vec<String>,
}

/// A trace that shows a finding.
#[derive(Debug)]
pub(crate) struct TraceLink {
    pub(crate) id: String,
    /// Anchor of its waterfall; `None` if the page does not draw it.
    pub(crate) anchor: Option<String>,
}
