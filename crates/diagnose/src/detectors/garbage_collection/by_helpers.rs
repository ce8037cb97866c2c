//! Collections of Node.js without a metric, as its threads and its memory show them.
//!
//! V8 collects garbage with helper threads, in the pauses of the program and beside it. Helpers also compile, hash and
//! compress, so that their CPU alone proves nothing. A heap that is too full for its program shows three signs: helpers use
//! more CPU than the thread of the program, this thread never waits for events, and the memory is at the limit that the
//! command sets. The busiest thread counts as that of the program, so the CPU of helpers is a lower bound.

use narrows_model::finding::evidence::garbage_collection::Heap;
use narrows_model::run::ServiceInstance;
use narrows_model::series::{SeriesKey, ThreadState, names};

use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::programs::node_heap_limit;
use crate::read::threads::mean;

/// Threads that wait for events at most, if the event loop does not: an idle Node.js has two, its loop and one that delays
/// tasks.
const WAITING_FOR_EVENTS_MAX: f64 = 1.5;
/// Name of what is full, where only the memory of the process is known.
const HEAP: &str = "the heap's limit";

/// CPU and memory of a replica of Node.js in one interval.
#[derive(Debug)]
pub(super) struct HelpedReplica {
    /// Place of the interval.
    pub(super) at: usize,
    /// Cores that its helper threads used.
    pub(super) helper_cores: f64,
    /// Share of its CPU time that they took, 0 to 1.
    pub(super) share: f64,
    pub(super) heap: Heap,
}

impl HelpedReplica {
    /// `None` if the signs are missing, or the limit of the heap is not known.
    pub(super) fn of(cpu: &Cpu<'_>, instance: &ServiceInstance, at: usize) -> Option<Self> {
        let (interval, thresholds) = (&cpu.intervals[at], &cpu.thresholds.garbage_collection);
        let limit_bytes = node_heap_limit(&instance.command)?;
        let of = |name: &str| cpu.cores_of(name, &instance.service, instance.replica, interval);
        let cores = of(names::CPU_CORES).filter(|cores| *cores > 0.0)?;
        let helper_cores = cores - mean_of(cpu, instance, interval, names::BUSIEST_THREAD_CORES, None)?;
        let waiting = mean_of(cpu, instance, interval, names::THREAD_STATES, Some(ThreadState::Events))?;
        let heap = Heap { pool: HEAP.to_owned(), used_bytes: of(names::MEMORY_BYTES)?, limit_bytes };
        let share = helper_cores / cores;
        let is_busy = helper_cores >= thresholds.gc_helper_cores && share >= thresholds.gc_helper_share;
        let is_stopped = waiting <= WAITING_FOR_EVENTS_MAX && heap.share() >= thresholds.gc_heap_share;
        (is_busy && is_stopped).then_some(Self { at, helper_cores, share, heap })
    }
}

/// Mean of a series of a replica; with a state, of its threads in that state.
fn mean_of(
    cpu: &Cpu<'_>,
    instance: &ServiceInstance,
    interval: &Interval,
    name: &str,
    state: Option<ThreadState>,
) -> Option<f64> {
    let is_meant = |key: &SeriesKey| {
        let its = key.labels.get(names::THREAD_STATE).map(String::as_str);
        (key.name.as_str(), key.service.as_str(), key.replica) == (name, &*instance.service, instance.replica)
            && state.is_none_or(|state| its == Some(state.as_str()))
    };
    mean(cpu.trial, interval, is_meant)
}
