//! The report as one page that needs nothing else: no network, no library, no font.
//!
//! Everything is drawn here; the script only chooses between what is already there and reads values back on hover, and
//! the page is whole without it. Size is bounded: lines are thinned, waterfalls share a number of rows, long text is
//! cut. Text gets into the page through `maud`, which escapes it, so nothing from outside is markup.

mod axis;
mod blocks;
pub(crate) mod call_graph;
mod charts;
mod finding;
mod inside_panels;
mod insides;
mod lanes;
pub(crate) mod pairs;
mod palette;
pub(crate) mod panels;
mod parts;
mod peers;
pub(crate) mod requests;
mod span_details;
mod table;
mod thin;
mod timeline;
mod waits;
mod waterfall;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use narrows_model::comparison::Outcome;
use narrows_model::printable;

use crate::figures::cut;
use crate::section::{Section, Tone};
use crate::sections::{self, Head};

pub(crate) use blocks::inline;
pub(crate) use palette::Palette;
pub use parts::{SCRIPT, STYLE, calls, chart_over_time, report, trace, two_traces};
pub(crate) use requests::Request;
pub(crate) use waterfall::anchor as waterfall_anchor;

/// The page of a run, from doctype to `</html>`.
pub fn page(outcome: &Outcome) -> String {
    let title = sections::head(outcome).title;
    framed(&title, &report(outcome))
}

/// A page, from doctype to `</html>`.
pub(crate) fn document(title: &str, header: &Markup, sections: &[Section]) -> String {
    framed(title, &html! { (header) @for section in sections { (blocks::section(section)) } })
}

fn framed(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Narrows" }
                style { "\n" (PreEscaped(STYLE)) }
                noscript { style { (PreEscaped(".panel[hidden]{display:block}.chooser{display:none}")) } }
            }
            body {
                main { (body) }
                script { "\n" (PreEscaped(SCRIPT)) }
            }
        }
        "\n"
    };
    printable::lines(&page.0).into_owned()
}

fn header(head: &Head) -> Markup {
    let (state, tone) = head.state;
    let class = if tone == Tone::Good { None } else { blocks::class(tone) };
    html! {
        header.top {
            h1 { (head.title) }
            @if !head.headline.is_empty() { p.lead { (unbroken(&head.headline)) } }
            p.note { span class=[class] { (state) } " · " (head.facts) " · " (head.machine) }
        }
        "\n"
    }
}

/// The text with a number and its unit kept on one line.
fn unbroken(text: &str) -> String {
    const UNITS: [&str; 5] = [" %", " ms", " µs", " cores", " queries"];
    let mut text = text.to_owned();
    for unit in UNITS {
        text = text.replace(unit, &unit.replace(' ', "\u{a0}"));
    }
    text
}

/// A section alone.
#[cfg(test)]
pub(crate) fn plain(section: &Section) -> String {
    blocks::section(section).into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use narrows_model::caveat::TrialCaveat;
    use narrows_model::finding::Evidence;

    #[test]
    fn the_page_is_whole_and_needs_nothing_else() {
        let page = page(&fixture::outcome());
        for id in ["variants", "objectives", "findings", "caveats", "charts", "requests", "background"] {
            assert!(page.contains(&format!("id=\"{id}\"")), "{id} is missing");
        }
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "the page asks for {outside}");
        }
        assert_eq!(page.matches("<em>× 24</em>").count(), 1);
    }

    #[test]
    fn marks_that_reorder_text_do_not_reach_a_page() {
        let mut outcome = fixture::outcome();
        outcome.comparison.variants[0].variant = "a\u{202e}b\u{1b}c".to_owned();
        let page = page(&outcome);
        assert!(page.contains("a\u{fffd}b\u{fffd}c") && !page.contains(['\u{202e}', '\u{1b}']));
    }

    #[test]
    fn text_from_outside_stays_text() {
        let evil = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
        let mut outcome = fixture::outcome();
        outcome.sentence = evil.to_owned();
        outcome.evidence.run.experiment = evil.to_owned();
        outcome.evidence.run.experiment_source = evil.to_owned();
        outcome.comparison.variants[0].variant = evil.to_owned();
        outcome.objectives[0][0].text = evil.to_owned();
        let mut other = outcome.evidence.trials[0].seconds[60].clone();
        other.request = evil.to_owned();
        outcome.evidence.trials[0].seconds.push(other);
        let trial = &mut outcome.evidence.trials[0];
        trial.trial.variant = evil.to_owned();
        trial.trial.caveats = vec![TrialCaveat::FileUnreadable { error: evil.to_owned() }];
        trial.trial.parameters.insert(evil.to_owned(), evil.to_owned());
        trial.services[0].service = evil.to_owned();
        trial.series.iter_mut().for_each(|series| series.key.service = evil.to_owned());
        let span = &mut trial.traces[0].spans[3];
        span.service = evil.to_owned();
        span.name = evil.to_owned();
        span.facts.db_query = Some(evil.to_owned());
        span.attributes.insert(evil.to_owned(), evil.into());
        let finding = &mut outcome.findings[0][0];
        finding.resource = evil.to_owned();
        finding.operation = Some(evil.to_owned());
        if let Evidence::NPlusOne(evidence) = &mut finding.evidence {
            evidence.statement.shape = evil.to_owned();
        }
        let mut other = finding.exemplars[0].clone();
        other.trace_id = evil.to_owned();
        finding.exemplars.push(other);
        let page = page(&outcome);
        assert_eq!(page.matches("<script").count(), 1);
        assert_eq!(page.matches("</script").count(), 1);
        assert!(!page.contains("<img") && !page.contains("\"'>"));
    }

    #[test]
    fn names_of_operations_and_published_figures_stay_text() {
        let evil = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
        let mut outcome = fixture::drones::outcome();
        for variant in &mut outcome.comparison.variants {
            let operation = &mut variant.operations[1];
            operation.name = evil.to_owned();
            operation.service = evil.to_owned();
            operation.calls[0].target = evil.to_owned();
            variant.services[0].service = evil.to_owned();
        }
        for trial in &mut outcome.evidence.trials {
            let operation = &mut trial.operations[1];
            operation.service = evil.to_owned();
            operation.name = evil.to_owned();
            operation.calls[0].target = evil.to_owned();
            let partitions = trial.series.iter_mut().filter(|series| !series.key.labels.is_empty());
            partitions.flat_map(|series| series.key.labels.values_mut()).for_each(|label| *label = evil.to_owned());
        }
        let note = &mut outcome.notes.parameters[0];
        (note.name, note.value, note.reason) = (evil.to_owned(), evil.to_owned(), evil.to_owned());
        outcome.beside[0].remark = evil.to_owned();
        outcome.beside[0].cells[0].variant = evil.to_owned();
        let published = outcome.notes.published.as_mut().unwrap();
        published.source = evil.to_owned();
        (published.service, published.operation) = (Some(evil.to_owned()), Some(evil.to_owned()));
        let page = page(&outcome);
        assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (1, 1));
        assert!(!page.contains("<img") && !page.contains("\"'>"));
        for id in ["reasons", "published", "operations", "services"] {
            assert!(page.contains(&format!("id=\"{id}\"")), "{id} is missing");
        }
    }

    #[test]
    fn long_runs_with_many_partitions_and_operations_stay_below_a_megabyte() {
        let mut outcome = fixture::drones::outcome();
        let long = &mut outcome.evidence.trials[0];
        long.windows[1].end_ns += 3600 * 1_000_000_000;
        for operation in &mut long.operations {
            let seconds = operation.seconds.clone();
            for n in 0..3600 {
                let mut second = seconds[n % seconds.len()];
                second.start_ns = seconds[0].start_ns + n as i64 * 1_000_000_000;
                operation.seconds.push(second);
            }
        }
        for series in &mut long.series {
            let points = series.points.clone();
            let more = (0..3600).map(|n| {
                let mut point = points[n % points.len()];
                point.time_ns = points[0].time_ns + n as i64 * 1_000_000_000;
                point
            });
            series.points = more.collect();
        }
        let partitions: Vec<_> = long.series.iter().filter(|series| !series.key.labels.is_empty()).cloned().collect();
        for n in 0..3 {
            let again = partitions.iter().cloned().map(|mut series| {
                series.key.labels.values_mut().for_each(|label| *label = format!("{n}/{label}"));
                series
            });
            long.series.extend(again);
        }
        let (long, summary) = (long.clone(), outcome.comparison.variants[0].clone());
        for n in 0..22 {
            let (mut trial, mut variant) = (long.clone(), summary.clone());
            trial.trial.variant = format!("variant-{n}");
            variant.variant = format!("variant-{n}");
            outcome.evidence.trials.push(trial);
            outcome.comparison.variants.push(variant);
            outcome.findings.push(outcome.findings[0].clone());
        }
        let bytes = page(&outcome).len();
        assert!(bytes < 1_000_000, "{bytes} bytes");
    }

    #[test]
    fn a_long_run_of_many_trials_stays_below_a_megabyte() {
        let mut outcome = fixture::outcome();
        let mut long = outcome.evidence.trials[0].clone();
        for n in 0..700 {
            let mut row = long.seconds[(n % 70) as usize].clone();
            row.start_ns = long.windows[0].start_ns + n * 1_000_000_000;
            long.seconds.push(row);
        }
        for series in &mut long.series {
            let first = series.points[0];
            let more = (0..1400).map(|n| {
                let mut point = series.points[(n % 100) as usize];
                point.time_ns = first.time_ns + n * 500_000_000;
                point
            });
            series.points = more.collect();
        }
        long.traces[0] = fixture::n_plus_one_trace(250);
        for n in 0..25 {
            let mut again = long.clone();
            again.trial.variant = format!("variant-{n}");
            outcome.evidence.trials.push(again);
        }
        let bytes = page(&outcome).len();
        assert!(bytes < 1_000_000, "{bytes} bytes");
    }

    #[test]
    fn an_empty_outcome_is_a_page_too() {
        let mut outcome = fixture::outcome();
        outcome.evidence.trials.clear();
        outcome.findings.clear();
        outcome.objectives.clear();
        outcome.comparison = Default::default();
        let page = page(&outcome);
        assert!(page.contains("0 trials") && page.ends_with("</html>\n"));
    }
}
