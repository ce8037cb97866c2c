//! The end of `narrows load`'s report: the load, the summary in hey's words, the objectives.

use std::time::Duration;

use narrows_load::ArrivalTotals;
use narrows_model::comparison::{Kept, ObjectiveResult};
use narrows_model::load::LoadPlan;
use narrows_model::run::Validity;
use narrows_model::units;
use narrows_report::repeated_and_cut;
use narrows_report::text::{ArrivalsSummary, LoadSummary, load_summary};

use super::FinishedLoad;
use super::arguments::Arguments;
use super::plan::in_words;
use super::target::shown;
use crate::wrapping::wrapped_to;

/// The summary as text.
pub(super) fn text(arguments: &Arguments, plan: &LoadPlan, sent: &FinishedLoad) -> String {
    let mut sections = vec![load(arguments, plan, sent), load_summary(&summary(arguments, sent))];
    if !sent.objectives.is_empty() {
        sections.push(objectives(&sent.objectives));
    }
    wrapped_to(&sections.join("\n"), super::super::stdout_width())
}

fn load(arguments: &Arguments, plan: &LoadPlan, sent: &FinishedLoad) -> String {
    let outcome = &sent.outcome;
    let mut lines = vec![("Model:", in_words(plan))];
    if arguments.open.rate.is_some() && arguments.concurrency.is_some() {
        lines[0].1.push_str("; -c is of no effect with --rate");
    }
    if !arguments.open.warmup.is_zero() {
        let counted = sent.counted.totals();
        let ended = units::count(counted.ended());
        let time = units::duration(counted.seconds * 1e9);
        let rate = counted.known_rate().map_or_else(|| "–".to_owned(), units::rate);
        lines.push(("Counted:", format!("{ended} requests in {time}, {rate} successes")));
        lines.push(("", "latencies cover these only; all other figures include the warm-up".to_owned()));
    }
    if outcome.client_addresses > 1 {
        lines.push(("From:", format!("{} addresses", units::count(outcome.client_addresses as u64))));
    }
    if let Some(stopped) = &sent.stopped {
        let after = units::duration((outcome.ended_ns - outcome.started_ns) as f64);
        lines.push(("Stopped:", format!("after {after}: {stopped}")));
    }
    let mut out = "Load:\n".to_owned();
    lines.iter().for_each(|(name, text)| out += &format!("  {name:<13} {text}\n"));
    for (label, text) in repeated_and_cut(&outcome.totals) {
        let name = format!("{}{}:", label[..1].to_uppercase(), &label[1..]);
        out += &format!("  {name:<13} {text}\n");
    }
    out
}

/// Data of the summary.
pub(super) fn summary(arguments: &Arguments, sent: &FinishedLoad) -> LoadSummary {
    let outcome = &sent.outcome;
    LoadSummary {
        url: shown(&arguments.url),
        total: Duration::from_nanos((outcome.ended_ns - outcome.started_ns).max(0) as u64),
        latency: sent.counted.totals().latency.clone(),
        bytes: outcome.body_bytes,
        dialup: outcome.phases.connect,
        tls: outcome.phases.tls,
        request_write: outcome.phases.write,
        response_wait: outcome.phases.wait,
        response_read: outcome.phases.read,
        statuses: outcome.statuses.clone(),
        causes: outcome.causes.clone(),
        arrivals: outcome.arrivals.map(arrivals),
        requests: vec![sent.counted.request()],
        validity: validity(&outcome.validity),
    }
}

/// The judgement in the words of the command line.
fn validity(validity: &Validity) -> Validity {
    let reasons = validity.reasons.iter().map(|reason| reason.replace("max_vus", "--max-connections"));
    Validity { verdict: validity.verdict, reasons: reasons.collect() }
}

fn arrivals(totals: ArrivalTotals) -> ArrivalsSummary {
    let (offered, achieved) = (totals.offered(), totals.achieved());
    ArrivalsSummary { offered, achieved, due: totals.due, late: totals.late, dropped: totals.dropped }
}

fn objectives(results: &[ObjectiveResult]) -> String {
    let lines = results.iter().map(|result| {
        let kept = match result.kept {
            Kept::Yes => "kept",
            Kept::No => "MISSED",
            Kept::Unknown => "UNKNOWN",
        };
        format!("  {kept:<8} {}: {}\n", result.text, result.measured)
    });
    format!("Objectives:\n{}", lines.collect::<String>())
}
