//! Caveats of the trials, which limit what findings and their absence mean.

use super::Context;
use crate::caveats;
use crate::section::{Block, Line, Section};

pub(super) fn section(context: &Context<'_>) -> Section {
    let all = caveats::caveats(context.outcome);
    let lines: Vec<Line> = all.iter().map(|one| Line::new("caveat", one.labels.clone(), one.describe())).collect();
    let blocks = if lines.is_empty() { Vec::new() } else { vec![Block::Lines(lines)] };
    Section::new("caveats", "Caveats", blocks)
}
