//! Spending of the time of each operation: a bar for each variant, as long as its mean latency, cut into parts.
//!
//! A service has its colour of the page's charts. What has none there, such as a database that is not the trial's own,
//! takes a colour that is free; waits are hatched, so that they differ from work without colour. A service's own time has
//! its colour throughout, with a pattern for each kind of wait.

use narrows_model::breakdown::{Breakdown, OwnTime, TimeCategory, TimePart};
use narrows_model::comparison::Outcome;
use narrows_model::units;

use super::escape::{Esc, cut};
use super::palette::Palette;
use crate::spent::{Spent, name, spent};

/// Operations drawn at most.
const OPERATIONS_MAX: usize = 12;
/// Variants of one operation at most.
const VARIANTS_MAX: usize = 24;
/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 80;
/// The least share of the longest bar in which a number has room.
const ROOM_FOR_NUMBER: f64 = 0.09;

/// The bars; empty when nothing was traced.
pub(super) fn section(outcome: &Outcome, palette: &Palette) -> String {
    let all = spent(outcome);
    if all.is_empty() {
        return String::new();
    }
    let colours = Colours::new(&all, palette);
    let groups: String = all.iter().take(OPERATIONS_MAX).map(|spent| group(spent, &colours)).collect();
    let rest = match all.len().saturating_sub(OPERATIONS_MAX) {
        0 => String::new(),
        n => format!(" {n} that took less time are in the JSON."),
    };
    format!(
        "<section id=\"time\"><h2>Where the time goes</h2>{groups}<p class=\"note\">Critical paths of traced requests, \
         added up: only what a request waited for counts. Bars of an operation share one scale.{rest}</p></section>\n"
    )
}

fn group(spent: &Spent<'_>, colours: &Colours<'_>) -> String {
    let slowest_ns = spent.slowest_ns();
    let entry = |category: &&TimeCategory| {
        format!(
            "<li class=\"{}\"><span>{}</span></li>",
            colours.class(category, spent.service),
            Esc(cut(&name(category), NAME_CHARS_MAX))
        )
    };
    let variants = spent.variants.iter().take(VARIANTS_MAX);
    let categories = spent.categories();
    let in_order = |breakdown: &Breakdown| {
        let mut parts = breakdown.parts.clone();
        parts.sort_by_key(|part| categories.iter().position(|category| **category == part.category));
        Breakdown { parts, ..breakdown.clone() }
    };
    let rows: String =
        variants.map(|(variant, breakdown)| row(variant, &in_order(breakdown), slowest_ns, colours)).collect();
    format!(
        "<h3>{} <code>{}</code></h3><div class=\"spent\">{rows}</div><ul class=\"legend parts\">{}</ul>",
        Esc(spent.service),
        Esc(cut(spent.operation, NAME_CHARS_MAX)),
        categories.iter().map(entry).collect::<String>()
    )
}

fn row(variant: &str, breakdown: &Breakdown, slowest_ns: f64, colours: &Colours<'_>) -> String {
    let part = |part: &TimePart| {
        let width = if slowest_ns > 0.0 { part.mean_ns / slowest_ns } else { 0.0 };
        let share = units::percent(part.share);
        let label = if width >= ROOM_FOR_NUMBER { format!("<b>{share}</b>") } else { String::new() };
        format!(
            "<i class=\"{}\" style=\"width:{:.2}%\" title=\"{}: {}, {share}\">{label}</i>",
            colours.class(&part.category, &breakdown.service),
            width * 100.0,
            Esc(cut(&name(&part.category), NAME_CHARS_MAX)),
            units::duration(part.mean_ns)
        )
    };
    let bar: String = breakdown.parts.iter().map(part).collect();
    format!(
        "<span>{}</span><div class=\"stack\">{bar}</div><span class=\"n\">{}</span>",
        Esc(cut(variant, NAME_CHARS_MAX)),
        units::duration(breakdown.mean_ns)
    )
}

/// The colours of a page's dependencies.
struct Colours<'a> {
    palette: &'a Palette,
    /// What has no colour on the charts, in the order in which it takes free ones.
    others: Vec<&'a str>,
}

impl<'a> Colours<'a> {
    fn new(all: &'a [Spent<'_>], palette: &'a Palette) -> Self {
        let mut others: Vec<&str> = Vec::new();
        for category in all.iter().flat_map(Spent::categories) {
            let TimeCategory::Dependency(name) = category else { continue };
            if !palette.has(name) && !others.contains(&name.as_str()) {
                others.push(name);
            }
        }
        Self { palette, others }
    }

    fn class(&self, category: &TimeCategory, service: &str) -> String {
        if let TimeCategory::Own(what) = category {
            return [self.palette.class(service), pattern(what)].join(" ").trim_end().to_owned();
        }
        let class = match category {
            TimeCategory::Dependency(name) => match self.others.iter().position(|other| other == name) {
                Some(position) => self.palette.free_class(position),
                None => self.palette.class(name),
            },
            TimeCategory::Pool => "pool",
            TimeCategory::BackOff(_) => "backoff",
            TimeCategory::Unknown | TimeCategory::Own(_) => "unknown",
        };
        class.to_owned()
    }
}

/// The pattern of a service's colour; none where it works or nothing is known.
fn pattern(what: &OwnTime) -> &'static str {
    match what {
        OwnTime::OnCpu | OwnTime::NotSampled => "",
        OwnTime::WaitingForCpu => "own-runnable",
        OwnTime::Disk => "own-disk",
        OwnTime::Sleep => "own-sleep",
        OwnTime::Network(_) => "own-network",
        OwnTime::Lock => "own-lock",
        OwnTime::Unseen => "own-unseen",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn html(outcome: &Outcome) -> String {
        section(outcome, &Palette::new(&outcome.evidence))
    }

    #[test]
    fn each_variant_has_a_bar_of_its_length() {
        let html = html(&crate::spent::tests::outcome());
        assert_eq!((html.matches("class=\"stack\"").count(), html.matches("<h3>").count()), (8, 2));
        let store = "<i class=\"c3\" style=\"width:49.08%\" title=\"docstore: 320 ms, 49 %\"><b>49 %</b></i>";
        assert!(html.contains(store), "{html}");
        assert!(html.contains("<i class=\"backoff\""), "{html}");
        assert!(html.contains("<li class=\"c5\"><span>redis</span></li>"), "a free colour: {html}");
        assert!(html.contains("<li class=\"c0\"><span>on CPU</span></li>"), "the service's own colour: {html}");
        assert!(
            html.contains("<li class=\"c4 own-lock\"><span>waiting for a lock</span></li>"),
            "with a pattern: {html}"
        );
    }

    #[test]
    fn names_stay_text_and_no_traces_draw_nothing() {
        let mut outcome = crate::spent::tests::outcome();
        let breakdown = &mut outcome.breakdowns[0][0];
        (breakdown.service, breakdown.operation) = ("<b>".to_owned(), "\"'><img>".to_owned());
        breakdown.parts[0].category = TimeCategory::Dependency("</section><script>".to_owned());
        outcome.evidence.trials[0].trial.variant = "<script>".to_owned();
        let html = html(&outcome);
        assert!(!html.contains("<script") && !html.contains("<img") && !html.contains("\"'>"));
        assert_eq!(super::section(&fixture::outcome(), &Palette::new(&fixture::outcome().evidence)), "");
    }
}
