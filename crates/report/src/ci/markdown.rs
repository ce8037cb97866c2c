//! A check as Markdown, for the summary of a job or a comment on a pull request.

use narrows_model::baseline::Check;

use crate::section::{Block, Phrase, Section, Tone};
use crate::{checked, markdown as writer};

/// Level of the heading.
const LEVEL: usize = 3;

/// The text. Ends with a line feed.
pub fn markdown(check: &Check) -> String {
    let mark = if check.is_worse() { "❌" } else { "✅" };
    let sentence = Block::Paragraph(Phrase::from(&check.sentence), Tone::Plain);
    let mut all = vec![Section::new("", format!("{mark} {}", check.experiment), vec![sentence])];
    all.extend(check.variants.iter().map(checked::variant));
    all.push(checked::caveats(&check.caveats));
    writer::sections(&all, LEVEL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_check_reads_in_a_comment() {
        insta::assert_snapshot!(markdown(&fixture::check()), @r"
        ### ❌ orders

        orders is worse than its baseline: mean latency of as-is +42 %.

        **as-is** · 5 trials before, 5 trials now

        |  | before | now | change | interval |  |
        |---|---:|---:|---:|---|---|
        | throughput | 100/s | 100/s | +0.2 % | −5.0 to +6.0 % | same |
        | mean latency | 12.0 ms | 17.0 ms | +42 % | +20 to +68 % | worse ✗ |
        | 99 % latency | 40.0 ms | 44.0 ms | +10 % | −30 to +70 % | cannot tell |
        | orders GET /orders\|all | 11.0 ms | 16.0 ms | +45 % | +20 to +70 % | worse ✗ |
        | failed requests | 0 % | 3.0 % |  |  | worse ✗ |

        1 operation not shown to differ

        - **+ appeared** n-plus-one: GET /orders fetches rows one at a time: &lt;50> queries
        - **- vanished** slow-query: orders GET /items

        | service | of each request | now | change |
        |---|---:|---:|---:|
        | postgres | 4.00 ms | 9.00 ms | +5.00 ms |
        | orders | 8.00 ms | 8.00 ms | – |

        - **caveat** Not in the baseline, and not checked: fixed.
        ");
    }
}
