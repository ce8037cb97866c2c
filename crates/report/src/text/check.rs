//! A run beside its baseline, as text: the figures of each variant, findings that came or went, services by change.

use narrows_model::baseline::Check;

use super::paint::Paint;
use super::{Style, WIDTH_MIN, sections};
use crate::checked;
use crate::section::{Block, Phrase, Section, Tone};

/// The text of `narrows baseline check`. Ends with a line feed.
pub fn check(check: &Check, style: Style) -> String {
    let tone = if check.is_worse() { Tone::Bad } else { Tone::Strong };
    let head = Block::Heading(Phrase::from(format!("{} beside its baseline", check.run)));
    let mut all = vec![Section::untitled(vec![head])];
    all.extend(check.variants.iter().map(checked::variant));
    all.push(checked::caveats(&check.caveats));
    all.push(Section::untitled(vec![Block::Paragraph(Phrase::from(&check.sentence), tone)]));
    sections(&all, Paint(style.color), style.width.max(WIDTH_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::text::Color;

    #[test]
    fn it_reads_from_top_to_bottom() {
        let style = Style { width: 90, color: Color::Never };
        insta::assert_snapshot!(check(&fixture::check(), style), @r#"
        orders-20251121-123000 beside its baseline

        as-is · 5 trials before, 5 trials now
                                 before      now  change  interval
        ─────────────────────────────────────────────────────────────────────────────
        throughput                100/s    100/s  +0.2 %  −5.0 to +6.0 %  same
        mean latency            12.0 ms  17.0 ms   +42 %  +20 to +68 %    worse ✗
        99 % latency            40.0 ms  44.0 ms   +10 %  −30 to +70 %    cannot tell
        orders GET /orders|all  11.0 ms  16.0 ms   +45 %  +20 to +70 %    worse ✗
        failed requests             0 %    3.0 %                          worse ✗
        1 operation not shown to differ
        + appeared  n-plus-one: GET /orders fetches rows one at a time: <50> queries
        - vanished  slow-query: orders GET /items

        service   of each request      now    change
        ────────────────────────────────────────────
        postgres          4.00 ms  9.00 ms  +5.00 ms
        orders            8.00 ms  8.00 ms         –

        caveat      Not in the baseline, and not checked: fixed.

        orders is worse than its baseline: mean latency of as-is +42 %.
        "#);
    }
}
