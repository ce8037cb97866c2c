//! Writes down when replicas under load are up and when not, and which ran out of memory.
//!
//! One point for each change, so that a replica that never fell costs nothing. "Up" is that its process runs: when it
//! serves again, the load shows.

use narrows_model::series::{Point, SeriesKey, names};
use narrows_telemetry::Store;

use crate::environment::now_ns;
use crate::trial::services::RunningReplica;

/// Whether a replica runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplicaState {
    Up,
    Down,
}

/// Notes how a replica stands from now on.
pub(super) fn note(replica: &RunningReplica, standing: ReplicaState, store: &dyn Store) {
    write(replica, names::REPLICA_UP, if standing == ReplicaState::Up { 1.0 } else { 0.0 }, store);
}

/// Notes that a replica that has ended ran out of memory, if it did.
pub(super) fn note_kill(replica: &RunningReplica, store: &dyn Store) {
    if replica.process.ran_out_of_memory() {
        write(replica, names::REPLICA_OUT_OF_MEMORY, 1.0, store);
    }
}

fn write(replica: &RunningReplica, name: &str, value: f64, store: &dyn Store) {
    let key = SeriesKey {
        name: name.to_owned(),
        unit: "1".to_owned(),
        service: replica.service.name.clone(),
        replica: replica.service.replica,
        ..SeriesKey::default()
    };
    // Points that the store refuses are counted there.
    drop(store.points(vec![(key, Point { time_ns: now_ns(), value })]));
}
