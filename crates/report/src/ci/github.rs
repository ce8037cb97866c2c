//! Annotations of GitHub Actions: lines on standard output that the page of a workflow run shows.
//!
//! A figure that is worse is an error, a finding that appeared a warning; without either, the sentence is a notice.

use narrows_model::baseline::{Check, FindingCheck, VariantCheck};
use narrows_model::diff::Fate;

use crate::checked::line;

/// The annotations, a line each. GitHub shows ten of each kind for a step, so the most important come first.
pub fn github(check: &Check) -> String {
    let worse = each(check, |variant| {
        let title = format!("{}: {} is worse", check.experiment, variant.variant);
        variant.worse().map(|figure| command("error", &title, &line(figure))).collect()
    });
    let appeared = each(check, |variant| {
        let title = format!("{}: new in {}", check.experiment, variant.variant);
        let all = variant.findings.iter().filter(|finding| finding.fate == Fate::Appeared);
        all.map(|finding| command("warning", &title, &finding_line(finding))).collect()
    });
    let sentence = match check.is_worse() {
        true => String::new(),
        false => command("notice", &check.experiment, &check.sentence),
    };
    worse + &appeared + &sentence
}

fn each(check: &Check, lines: impl Fn(&VariantCheck) -> String) -> String {
    check.variants.iter().map(lines).collect()
}

fn finding_line(finding: &FindingCheck) -> String {
    let title = finding.title.as_deref().unwrap_or(&finding.finding.resource);
    format!("{}: {title}", finding.finding.kind)
}

/// `::error title=…::…`, escaped as GitHub's toolkit does it, so that no name from a measured system becomes a command.
fn command(kind: &str, title: &str, message: &str) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    format!("::{kind} title={}::{}\n", property(title), data(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_is_worse_is_an_error_and_what_is_new_a_warning() {
        insta::assert_snapshot!(github(&fixture::check()), @r#"
        ::error title=orders%3A as-is is worse::mean latency: 12.0 ms → 17.0 ms (+42 %25, interval +20 to +68 %25)
        ::error title=orders%3A as-is is worse::orders GET /orders|all: 11.0 ms → 16.0 ms (+45 %25, interval +20 to +70 %25)
        ::error title=orders%3A as-is is worse::failed requests: 0 %25 → 3.0 %25
        ::warning title=orders%3A new in as-is::n-plus-one: GET /orders fetches rows one at a time: <50> queries
        "#);
    }

    #[test]
    fn text_cannot_become_a_command() {
        assert_eq!(command("error", "a:b,c", "x\n::warning::y"), "::error title=a%3Ab%2Cc::x%0A::warning::y\n");
    }
}
