//! What a run showed on two screens: the variants, the bottleneck of each, and what was published or predicted beside what
//! was measured. Everything else is in the whole text and in the page.

use narrows_model::comparison::Outcome;

use super::paint::{Paint, clean};
use super::table::{Align, render};
use super::{Style, WIDTH_MIN, header, join, published, scored, sentence, table};
use crate::bottleneck::{Bottleneck, bottlenecks};

/// The text in brief. Ends with a line feed.
pub fn brief(outcome: &Outcome, style: Style) -> String {
    let width = style.width.max(WIDTH_MIN);
    let paint = Paint(style.color);
    join([
        header(outcome, paint, width),
        table::variants(&outcome.comparison, paint, width),
        narrow_places(outcome, paint, width),
        published::figures(outcome, paint, width),
        scored::steps(outcome, paint, width),
        sentence(outcome, paint, width),
    ])
}

fn narrow_places(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let all = bottlenecks(outcome);
    let has_gains = all.iter().any(|one| !one.gain.is_empty());
    let columns = if has_gains { 3 } else { 2 };
    let header: Vec<(String, Align)> = ["variant", "bottleneck", "its fix would gain"]
        .into_iter()
        .take(columns)
        .map(|name| (name.to_owned(), Align::Left))
        .collect();
    let row = |one: &Bottleneck<'_>| {
        [one.variant, &one.what, &one.gain].into_iter().take(columns).map(clean).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    render(&header, &rows, paint, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::drones;
    use crate::text::Color;

    #[test]
    fn it_fits_on_two_screens_and_names_every_bottleneck() {
        let outcome = drones::outcome();
        let text = brief(&outcome, Style { width: 100, color: Color::Never });
        assert!(text.lines().count() <= 80, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        for name in outcome.comparison.variants.iter().map(|variant| &variant.variant) {
            assert!(text.matches(name.as_str()).count() >= 2, "{text}");
        }
        assert!(!text.contains("remark ") && text.contains("published → measured"), "{text}");
    }
}
