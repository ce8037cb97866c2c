//! Writes down when replicas under load are up and when not.
//!
//! One point for each change, so that a replica that never fell costs nothing. "Up" is that its process runs: when it
//! serves again, the load shows.

use narrows_model::series::{Point, SeriesKey, names};
use narrows_telemetry::Store;

use super::services::Running;
use crate::environment::now_ns;

/// Whether a replica runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Up,
    Down,
}

/// Notes how a replica stands from now on.
pub(super) fn note(replica: &Running, standing: Standing, store: &dyn Store) {
    let key = SeriesKey {
        name: names::REPLICA_UP.to_owned(),
        unit: "1".to_owned(),
        service: replica.service.name.clone(),
        replica: replica.service.replica,
        ..SeriesKey::default()
    };
    let value = if standing == Standing::Up { 1.0 } else { 0.0 };
    // Points that the store refuses are counted there.
    drop(store.points(vec![(key, Point { time_ns: now_ns(), value })]));
}
