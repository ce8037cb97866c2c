//! Cases whose evidence comes from the simulator: `simulate` holds what differs from a healthy system.

use narrows_model::evidence::TrialEvidence;
use narrows_testkit::random::Random;
use narrows_testkit::simulator::System;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Told {
    /// Users and seconds of each step.
    steps: Vec<(u32, u32)>,
    think: Option<f64>,
    web_cores: Option<u32>,
    web_ms: Option<f64>,
    database_cores: Option<u32>,
    query_ms: Option<f64>,
    queries: Option<u32>,
    rows_one_by_one: Option<u32>,
    pool: Option<u32>,
    pool_held_ms: Option<f64>,
    pool_metrics: Option<bool>,
    peer_calls: Option<u32>,
    peer_ms: Option<f64>,
    serial: Option<bool>,
    partitions: Option<u32>,
    provisioned: Option<f64>,
    charge: Option<f64>,
    hot_share: Option<f64>,
}

/// Runs the system that a case describes, with a seed of its name.
///
/// # Errors
/// Fault of `simulate`.
pub(crate) fn evidence_of(case: &str, told: &Value) -> Result<TrialEvidence, String> {
    let told: Told = serde_json::from_value(told.clone()).map_err(|error| format!("simulate: {error}"))?;
    let healthy = System::default();
    let system = System {
        seed: Random::of_name(case).bits(),
        steps: told.steps,
        think_ms: told.think.unwrap_or(healthy.think_ms),
        web_cores: told.web_cores.unwrap_or(healthy.web_cores),
        web_ms: told.web_ms.unwrap_or(healthy.web_ms),
        database_cores: told.database_cores.unwrap_or(healthy.database_cores),
        query_ms: told.query_ms.unwrap_or(healthy.query_ms),
        queries: told.queries.unwrap_or(healthy.queries),
        rows_one_by_one: told.rows_one_by_one.unwrap_or(healthy.rows_one_by_one),
        pool: told.pool.unwrap_or(healthy.pool),
        pool_held_ms: told.pool_held_ms.unwrap_or(healthy.pool_held_ms),
        has_pool_metrics: told.pool_metrics.unwrap_or(healthy.has_pool_metrics),
        peer_calls: told.peer_calls.unwrap_or(healthy.peer_calls),
        is_serial: told.serial.unwrap_or(healthy.is_serial),
        peer_ms: told.peer_ms.unwrap_or(healthy.peer_ms),
        partitions: told.partitions.unwrap_or(healthy.partitions),
        provisioned: told.provisioned.unwrap_or(healthy.provisioned),
        charge: told.charge.unwrap_or(healthy.charge),
        hot_share: told.hot_share.unwrap_or(healthy.hot_share),
    };
    Ok(system.run(case))
}
