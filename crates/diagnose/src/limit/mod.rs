//! Limit of a trial's throughput, judged from its load, its CPU and what was found.
//!
//! Every trial gets a verdict. It rests on the levels of the load alone, so that a system without spans gets one too;
//! findings and spans say more precisely where the limit lies. In a closed load without think time, throughput is users
//! ÷ latency (Little's law), so something always limits it, and the verdict says what or why that is not known.

use narrows_model::finding::Finding;
use narrows_model::limit::Limit;

use crate::read::Reading;

mod levels;
mod verdict;
mod waiting;

/// The verdict on one trial. `findings` are ranked,
pub(crate) fn limit(reading: &Reading<'_>, findings: &[Finding]) -> Limit {
    let verdict = verdict::Judge { reading, findings }.verdict();
    let levels = levels::summaries(reading);
    let knee = levels::knee(&levels);
    Limit { levels, knee, verdict }
}

#[cfg(test)]
mod tests;
