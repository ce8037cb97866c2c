//! The plan of a comparison, which its run file keeps: a later reader must apply the bounds of the looks that were taken.

use std::path::Path;

use narrows_telemetry::run_file::Reader;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The name under which a run file keeps the plan.
pub(crate) const PLAN: &str = "comparison_plan";

/// The plan of a comparison, as a run file keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ComparisonPlan {
    pub(crate) before: String,
    pub(crate) after: String,
    /// Pairs at most.
    pub(crate) planned: u32,
    pub(crate) seed: u64,
}

/// The plan that a run file keeps; none of a run that is no comparison.
pub(crate) fn kept_plan(path: &Path) -> Result<Option<ComparisonPlan>, Error> {
    if narrows_telemetry::exchange::is_evidence(path) {
        return Ok(None);
    }
    Ok(plan_in(&Reader::open(path)?)?)
}

fn plan_in(reader: &Reader) -> Result<Option<ComparisonPlan>, narrows_telemetry::run_file::Error> {
    const PAIRS: std::ops::RangeInclusive<u32> = 2..=narrows_model::proof::REPEATS_MAX;
    let kept = reader.conclusion(PLAN)?;
    Ok(kept
        .and_then(|plan| serde_json::from_value(plan).ok())
        .filter(|plan: &ComparisonPlan| PAIRS.contains(&plan.planned)))
}

/// Errors if the file is a comparison's: it holds only completed trials, and the looks taken bind how it may continue.
pub(crate) fn refuse_to_resume(reader: &Reader, path: &Path) -> Result<(), Error> {
    match plan_in(reader)? {
        Some(plan) => Err(Error::Resume(format!(
            "{} is a comparison; `narrows compare {0}:{} {0}:{}` shows what it measured",
            path.display(),
            plan.before,
            plan.after
        ))),
        None => Ok(()),
    }
}
