//! The service that the load's requests go to.

use std::collections::BTreeSet;

use crate::read::Reading;

/// Name for a system whose target is not known.
const SYSTEM: &str = "the system";

/// The service that requests from outside reach first: the only one, or the one whose requests begin traces.
pub(crate) fn target<'a>(reading: &Reading<'a>) -> &'a str {
    let services = reading.trial.service_names();
    if let [only] = services[..] {
        return only;
    }
    let entries = reading.requests.iter().filter(|request| request.entry.parent_id.is_none());
    let names: BTreeSet<&'a str> = entries.map(|request| request.entry.service.as_str()).collect();
    let mut names = names.into_iter();
    match (names.next(), names.next()) {
        (Some(only), None) => only,
        _ => SYSTEM,
    }
}
