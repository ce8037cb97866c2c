//! The report as one page that needs nothing else: no network, no library, no font.
//!
//! Everything is drawn here; the script only chooses between what is already there and reads values back on hover, and
//! the page is whole without it. Size is bounded: lines are thinned, waterfalls share a number of rows, long text is
//! cut.

mod axis;
mod background;
mod charts;
mod escape;
mod findings;
mod palette;
mod panels;
mod span_details;
mod summary;
mod thin;
mod timeline;
mod waterfall;

use std::collections::BTreeSet;

use narrows_model::comparison::Outcome;
use narrows_model::finding::Finding;
use narrows_model::run::RunState;
use narrows_model::trace::{Span, Trace, hex};
use narrows_model::units;

use crate::figures::{instant, plural};
use crate::recurring;
use escape::Esc;
use palette::Palette;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Rows of all waterfalls of the page together.
const WATERFALL_ROWS_TOTAL: usize = 450;
/// Rows of a waterfall however many there are.
const WATERFALL_ROWS_MIN: usize = 18;
/// Variants whose waterfall is drawn.
const WATERFALLS_MAX: usize = 24;

/// One variant's request, chosen to be shown.
struct Request<'a> {
    variant: &'a str,
    trace: &'a Trace,
    findings: Vec<&'a Finding>,
}

/// The page, from doctype to `</html>`.
pub fn page(outcome: &Outcome) -> String {
    let palette = Palette::of(&outcome.evidence);
    let requests = requests(outcome);
    let shown: BTreeSet<String> = requests.iter().map(|request| hex(&request.trace.id)).collect();
    let body = [
        header(outcome),
        background::warnings(outcome),
        summary::variants(outcome),
        summary::objectives(outcome),
        findings::section(outcome, &shown),
        panels::section(outcome, &palette),
        waterfalls(&requests, &palette),
        background::section(outcome),
    ]
    .concat();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{} · Narrows</title>\n<style>\n{STYLE}</style>\n<noscript><style>.panel[hidden]{{display:block}}\
         .chooser{{display:none}}</style></noscript>\n</head>\n<body>\n<main>\n{body}</main>\n<script>\n{SCRIPT}</script>\n\
         </body>\n</html>\n",
        Esc(&outcome.evidence.run.experiment)
    )
}

fn header(outcome: &Outcome) -> String {
    let run = &outcome.evidence.run;
    let state = match run.state {
        RunState::Complete => "complete",
        RunState::Running => "running",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
    };
    let mut facts = vec![
        state.to_owned(),
        plural(outcome.evidence.trials.len(), "trial", "trials"),
        format!("{}, {}", run.environment.cpu_model, plural(run.environment.cores as usize, "core", "cores")),
        instant(run.started_ns),
    ];
    if run.time_scale != 1.0 {
        facts.insert(2, format!("time scale {}", run.time_scale));
    }
    format!(
        "<header class=\"top\"><h1>{}</h1><p class=\"lead\">{}</p><p class=\"note\">{}</p></header>\n",
        Esc(&run.experiment),
        Esc(&unbroken(&outcome.sentence)),
        Esc(facts.join(" · "))
    )
}

fn requests(outcome: &Outcome) -> Vec<Request<'_>> {
    let mut requests = Vec::new();
    for variant in recurring::by_variant(outcome).into_iter().take(WATERFALLS_MAX) {
        let findings: Vec<&Finding> = variant.findings.iter().map(|recurring| recurring.finding).collect();
        let traces = variant.trials.iter().map(|index| &outcome.evidence.trials[*index].traces);
        let exemplar = traces.clone().find_map(|traces| {
            let chosen = waterfall::choose(traces, &findings)?;
            let id = hex(&chosen.id);
            findings.iter().flat_map(|f| &f.exemplars).any(|e| e.trace_id == id).then_some(chosen)
        });
        let chosen = exemplar.or_else(|| traces.clone().find_map(|traces| waterfall::choose(traces, &[])));
        requests.extend(chosen.map(|trace| Request { variant: variant.variant, trace, findings }));
    }
    requests
}

fn waterfalls(requests: &[Request<'_>], palette: &Palette) -> String {
    if requests.is_empty() {
        return String::new();
    }
    let rows_max = (WATERFALL_ROWS_TOTAL / requests.len()).clamp(WATERFALL_ROWS_MIN, waterfall::ROWS_MAX);
    let mut out = "<section id=\"requests\"><h2>One request, end to end</h2>".to_owned();
    for request in requests {
        let exemplars = request.findings.iter().flat_map(|finding| &finding.exemplars);
        let marked: BTreeSet<&str> = exemplars.flat_map(|e| e.span_ids.iter().map(String::as_str)).collect();
        let root = request.trace.root();
        out += &format!(
            "<h3>{}</h3><p class=\"note\">{} · {} · {} · trace <code>{}</code></p>{}",
            Esc(request.variant),
            Esc(root.map_or("", |span| span.name.as_str())),
            units::duration(root.map_or(0.0, |span| Span::duration_ns(span) as f64)),
            plural(request.trace.spans.len(), "span", "spans"),
            hex(&request.trace.id),
            waterfall::html(request.trace, &marked, palette, rows_max)
        );
    }
    out + "</section>\n"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_page_is_whole_and_needs_nothing_else() {
        let page = page(&fixture::outcome());
        for id in ["variants", "objectives", "findings", "charts", "requests", "background"] {
            assert!(page.contains(&format!("id=\"{id}\"")), "{id} is missing");
        }
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "the page asks for {outside}");
        }
        assert_eq!(page.matches("<em>× 24</em>").count(), 1);
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
        let trial = &mut outcome.evidence.trials[0];
        trial.trial.variant = evil.to_owned();
        trial.trial.caveats = vec![evil.to_owned()];
        trial.trial.parameters.insert(evil.to_owned(), evil.to_owned());
        trial.services[0].service = evil.to_owned();
        trial.series.iter_mut().for_each(|series| series.key.service = evil.to_owned());
        let span = &mut trial.traces[0].spans[3];
        span.service = evil.to_owned();
        span.name = evil.to_owned();
        span.facts.db_query = Some(evil.to_owned());
        span.attributes.insert(evil.to_owned(), evil.into());
        let finding = &mut outcome.findings[0][0];
        finding.title = evil.to_owned();
        finding.evidence_text = Some(evil.to_owned());
        finding.numbers[0].name = evil.to_owned();
        finding.numbers[0].unit = evil.to_owned();
        let mut other = finding.exemplars[0].clone();
        other.trace_id = evil.to_owned();
        finding.exemplars.push(other);
        let page = page(&outcome);
        assert_eq!(page.matches("<script").count(), 1);
        assert_eq!(page.matches("</script").count(), 1);
        assert!(!page.contains("<img") && !page.contains("\"'>"));
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
