//! `connection-limit`: a database refuses connections because a limit of their number is reached.
//!
//! The limit is that of the server, of one role or of one database on it. Errors report it (`reports`), so how many
//! connections there are need not be known. The finding names the database; where only the caller's own span reports the
//! refusal, it is the one database of that kind which the caller queries.
//!
//! A pool of the caller that has no free connection is another problem (`pool-wait`): its errors come from the client.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::connection_limit as evidence;
use narrows_model::finding::{Confidence, Finding, FindingKind};
use narrows_model::trace::Span;

use crate::Detector;
use crate::exemplars::{TEXT_CHARS_MAX, clipped};
use crate::read::Reading;
use crate::read::databases::{Database, databases, name_of};
use crate::read::error_reports::{ErrorReports, Least};
use crate::read::requests::is_database;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;
use reports::{report, reported};

mod reports;
mod words;

rule_thresholds! {
    /// Traces that must show a refused connection.
    connection_limit_traces: usize = 3;
    /// Share of all requests that must meet one.
    connection_limit_share: f64 = 0.005;
}

/// See the module.
#[derive(Debug)]
pub struct ConnectionLimit;

impl Detector for ConnectionLimit {
    fn kind(&self) -> FindingKind {
        FindingKind::ConnectionLimit
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let thresholds = &reading.thresholds.connection_limit;
        let least = Least { traces: thresholds.connection_limit_traces, share: thresholds.connection_limit_share };
        let databases = databases(reading);
        let place = |span| database_of(reading.trial, &databases, span).unwrap_or(&span.service);
        let found = ErrorReports::by_place(reading, reported, place, least);
        found.iter().filter_map(|(place, reported)| finding(self, reading, place, reported)).collect()
    }
}

/// Name of the database that refused a connection; `None` if a caller queries none of that kind, or several.
fn database_of<'a>(trial: &'a TrialEvidence, databases: &[Database<'a>], span: &'a Span) -> Option<&'a str> {
    if is_database(span) {
        return Some(name_of(trial, span));
    }
    let systems = report(span)?.systems;
    let is_queried = |database: &&Database<'_>| {
        database.system.is_some_and(|system| systems.contains(&system))
            && database.queries.iter().any(|sent| sent.client == span.service)
    };
    let mut queried = databases.iter().filter(is_queried);
    queried.next().filter(|_| queried.next().is_none()).map(|database| database.name)
}

fn finding(
    detector: &ConnectionLimit,
    reading: &Reading<'_>,
    place: &str,
    reported: &ErrorReports<'_>,
) -> Option<Finding> {
    let is_caller = |service: &str| reported.services.contains(service);
    let replicas = reading.trial.services.iter().filter(|instance| is_caller(&instance.service)).count();
    let evidence = evidence::ConnectionLimit {
        limit: report(reported.span)?.limit,
        name: reported.name.to_owned(),
        text: reported.text.map(|text| clipped(text, TEXT_CHARS_MAX)),
        share: finite(reported.share),
        traces: reported.count(),
        callers: reported.services.iter().map(|service| (*service).to_owned()).collect(),
        replicas,
    };
    // The database is not known if the finding is about the caller itself.
    let confidence = if is_caller(place) { Confidence::Medium } else { Confidence::High };
    Some(Finding {
        resource: place.into(),
        cost_share: finite(reported.share).min(1.0),
        confidence,
        exemplars: reported.exemplars(reports::reported),
        ..Finding::new(evidence, detector.version())
    })
}

#[cfg(test)]
mod tests;
