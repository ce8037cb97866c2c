//! How often each service logged each kind of error, counted while the lines are read: of a line nothing is kept.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use narrows_model::evidence::{ErrorLog, TrialEvidence};

use super::bounds::BoundedConnection;
use super::words::plausible;
use crate::logs::{is_error, template};

/// Kinds of errors of one service that are told apart, the first ones.
const TEMPLATES_MAX: usize = 100;
/// Services that are told apart, the first ones.
const SERVICES_MAX: usize = 500;

/// The errors that were logged in counted windows of a trial, the most frequent first. Of the trial's evidence only the
/// trial and its windows are read.
pub(super) fn error_logs_of(connection: &BoundedConnection, trial: &TrialEvidence) -> rusqlite::Result<Vec<ErrorLog>> {
    let sql = "SELECT l.time_ns, (SELECT text FROM strings WHERE id = l.service), \
               (SELECT text FROM strings WHERE id = l.severity), l.text FROM log_rows AS l WHERE l.trial = ?1 \
               ORDER BY l.time_ns, l.id";
    let mut counts: BTreeMap<String, HashMap<String, u64>> = BTreeMap::new();
    let mut statement = connection.prepare_cached(sql)?;
    let mut lines = statement.query([trial.trial.id])?;
    while let Some(line) = lines.next()? {
        if !trial.is_counted(plausible(line.get(0)?)) {
            continue;
        }
        let text = |at: usize| Ok::<_, rusqlite::Error>(line.get_ref(at)?.as_str_or_null()?.unwrap_or_default());
        let (service, severity, message) = (text(1)?, text(2)?, text(3)?);
        if is_error(severity, message) {
            count(&mut counts, service, message);
        }
    }
    let one =
        |service: &String, (template, count): (String, u64)| ErrorLog { service: service.clone(), template, count };
    let all = counts.into_iter().flat_map(|(service, templates)| {
        templates.into_iter().map(|counted| one(&service, counted)).collect::<Vec<_>>()
    });
    let mut all: Vec<ErrorLog> = all.collect();
    all.sort_by(|a, b| (Reverse(a.count), &a.service, &a.template).cmp(&(Reverse(b.count), &b.service, &b.template)));
    Ok(all)
}

fn count(counts: &mut BTreeMap<String, HashMap<String, u64>>, service: &str, message: &str) {
    if counts.len() >= SERVICES_MAX && !counts.contains_key(service) {
        return;
    }
    let templates = counts.entry(service.to_owned()).or_default();
    let template = template(message);
    let is_known = templates.contains_key(&template) || templates.len() < TEMPLATES_MAX;
    let template = if is_known { template } else { ErrorLog::OTHERS.to_owned() };
    *templates.entry(template).or_default() += 1;
}
