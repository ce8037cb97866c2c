//! OpenTelemetry metrics of a hub, one series per partition.
//!
//! All but the histograms are observed when the SDK collects, from counts that partitions keep anyway. Histograms are
//! recorded once per commit. A hub that was closed and dropped is not observed any more.

use std::sync::{Arc, Weak};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Histogram, Meter as Instruments};

use crate::client::Status;
use crate::hub::Post;
use crate::hub::inbox::Inbox;
use crate::hub::meter::{Meter, PartitionStats};
use crate::ids::PartitionId;

const PARTITION: &str = "durable.partition.id";
/// Seconds: from the time of memory to that of a busy disk.
const SECONDS: [f64; 14] = [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];
/// Up to what waits for the log at most.
const BYTES: [f64; 9] = [256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];
const FRAMES: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];

/// The histograms of the commits of one partition.
#[derive(Debug)]
pub(super) struct CommitMetrics {
    duration: Histogram<f64>,
    bytes: Histogram<u64>,
    frames: Histogram<u64>,
    partition: [KeyValue; 1],
}

impl CommitMetrics {
    pub(super) fn new(meter: &Instruments, partition: PartitionId) -> Self {
        let duration = meter
            .f64_histogram("durable.log.commit.duration")
            .with_unit("s")
            .with_description("How long appends to the log took until they were durable")
            .with_boundaries(SECONDS.to_vec());
        let bytes = meter
            .u64_histogram("durable.log.commit.size")
            .with_unit("By")
            .with_description("Bytes of frames in one commit")
            .with_boundaries(BYTES.to_vec());
        let frames = meter
            .u64_histogram("durable.log.commit.frames")
            .with_unit("{frame}")
            .with_description("Frames in one commit")
            .with_boundaries(FRAMES.to_vec());
        let partition = [KeyValue::new(PARTITION, i64::from(partition.0))];
        Self { duration: duration.build(), bytes: bytes.build(), frames: frames.build(), partition }
    }

    pub(super) fn record(&self, frames: usize, bytes: usize, took: Duration) {
        self.duration.record(took.as_secs_f64(), &self.partition);
        self.bytes.record(bytes as u64, &self.partition);
        self.frames.record(frames as u64, &self.partition);
    }
}

/// The figures that callbacks read, of the partitions that run here. They do not keep them alive.
#[derive(Clone)]
pub(super) struct MetricSource {
    meters: Arc<[Weak<Meter>]>,
    post: Weak<Post>,
}

impl MetricSource {
    pub(super) fn new(meters: &[Arc<Meter>], post: &Arc<Post>) -> Self {
        Self { meters: meters.iter().map(Arc::downgrade).collect(), post: Arc::downgrade(post) }
    }

    fn each(&self, mut each: impl FnMut(&Meter, &Inbox, KeyValue)) {
        let Some(post) = self.post.upgrade() else { return };
        for (id, meter) in post.partitions().zip(self.meters.iter()) {
            if let (Some(meter), Some(inbox)) = (meter.upgrade(), post.inbox(id)) {
                each(&meter, &inbox, KeyValue::new(PARTITION, i64::from(id.0)));
            }
        }
    }

    /// A callback that observes one figure of each partition.
    fn figure<T: 'static>(
        &self,
        figure: impl Fn(&PartitionStats) -> T + Send + Sync + 'static,
    ) -> impl Fn(&dyn AsyncInstrument<T>) + Send + Sync + 'static {
        let watched = self.clone();
        move |observer| watched.each(|meter, _, partition| observer.observe(figure(&meter.read()), &[partition]))
    }

    /// A callback that observes several figures of each partition, distinguished by an attribute.
    fn figures<T: Copy + 'static, const N: usize>(
        &self,
        attribute: &'static str,
        figures: impl Fn(&PartitionStats) -> [(&'static str, T); N] + Send + Sync + 'static,
    ) -> impl Fn(&dyn AsyncInstrument<T>) + Send + Sync + 'static {
        let watched = self.clone();
        move |observer| {
            watched.each(|meter, _, partition| {
                for (value, figure) in figures(&meter.read()) {
                    observer.observe(figure, &[partition.clone(), KeyValue::new(attribute, value)]);
                }
            });
        }
    }

    /// A callback that observes which partitions have stopped.
    fn stopped(&self) -> impl Fn(&dyn AsyncInstrument<i64>) + Send + Sync + 'static {
        let watched = self.clone();
        move |observer| {
            watched.each(|_, inbox, partition| observer.observe(i64::from(inbox.failure().is_some()), &[partition]));
        }
    }

    /// A callback that observes how many inputs wait.
    fn waiting(&self) -> impl Fn(&dyn AsyncInstrument<i64>) + Send + Sync + 'static {
        let watched = self.clone();
        move |observer| {
            watched.each(|_, inbox, partition| observer.observe(signed(inbox.waiting() as u64), &[partition]));
        }
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Makes all instruments that are observed.
pub(super) fn observe(meter: &Instruments, watched: &MetricSource) {
    observe_work(meter, watched);
    observe_store(meter, watched);
    observe_health(meter, watched);
    observe_backlog(meter, watched);
    observe_holdings(meter, watched);
}

/// Counts since the hub was opened.
fn observe_work(meter: &Instruments, watched: &MetricSource) {
    meter
        .u64_observable_counter("durable.events")
        .with_unit("{event}")
        .with_description("Events: 2 per activity, sub-orchestration and operation called, 1 per other event")
        .with_callback(watched.figure(|stats| stats.counts.events))
        .build();
    meter
        .u64_observable_counter("durable.orchestrations.started")
        .with_unit("{orchestration}")
        .with_description("Orchestrations started")
        .with_callback(watched.figure(|stats| stats.counts.started))
        .build();
    meter
        .u64_observable_counter("durable.orchestrations.ended")
        .with_unit("{orchestration}")
        .with_description("Orchestrations ended")
        .with_callback(watched.figure(|stats| stats.counts.ended))
        .build();
    meter
        .u64_observable_counter("durable.entity.operations")
        .with_unit("{operation}")
        .with_description("Operations of entities that ran")
        .with_callback(watched.figure(|stats| stats.counts.operations))
        .build();
    meter
        .u64_observable_counter("durable.cursor.lookups")
        .with_unit("{lookup}")
        .with_description("How often an orchestration was found in memory (hit) or had to be replayed (miss)")
        .with_callback(watched.figures("durable.cursor.result", |stats| {
            [("hit", stats.counts.cursor_hits), ("miss", stats.counts.cursor_misses)]
        }))
        .build();
}

/// Bytes written and read back.
fn observe_store(meter: &Instruments, watched: &MetricSource) {
    meter
        .u64_observable_counter("durable.snapshots")
        .with_unit("{snapshot}")
        .with_description("Snapshots finished, and given up because the store failed")
        .with_callback(watched.figures("durable.snapshot.outcome", |stats| {
            [("finished", stats.snapshots), ("failed", stats.snapshots_failed)]
        }))
        .build();
    meter
        .f64_observable_gauge("durable.recovery.duration")
        .with_unit("s")
        .with_description("How long recovery took when the hub was opened")
        .with_callback(watched.figure(|stats| Duration::from_nanos(stats.recovery_ns).as_secs_f64()))
        .build();
}

/// How partitions do.
fn observe_health(meter: &Instruments, watched: &MetricSource) {
    meter
        .u64_observable_counter("durable.clock.leaps")
        .with_unit("{leap}")
        .with_description("Times that the clock leapt by more than a minute, ahead or back")
        .with_callback(watched.figure(|stats| stats.clock_leaps))
        .build();
    meter
        .i64_observable_up_down_counter("durable.partition.stopped")
        .with_unit("{partition}")
        .with_description("1 if the partition has stopped: its store or the engine failed")
        .with_callback(watched.stopped())
        .build();
}

/// Queues.
fn observe_backlog(meter: &Instruments, watched: &MetricSource) {
    meter
        .i64_observable_up_down_counter("durable.inbox.inputs")
        .with_unit("{input}")
        .with_description("Requests, lots of messages and results of activities that the partition has not taken up")
        .with_callback(watched.waiting())
        .build();
    meter
        .i64_observable_up_down_counter("durable.outbox.messages")
        .with_unit("{message}")
        .with_description("Messages sent to partitions and not known to have arrived")
        .with_callback(watched.figure(|stats| signed(stats.counts.outbox)))
        .build();
    meter
        .i64_observable_up_down_counter("durable.log.waiting")
        .with_unit("{effect}")
        .with_description("Responses, messages and activities that wait until their cause is durable")
        .with_callback(watched.figure(|stats| signed(stats.counts.gated)))
        .build();
    meter
        .i64_observable_up_down_counter("durable.activities.open")
        .with_unit("{activity}")
        .with_description("Activities under way and waiting")
        .with_callback(watched.figure(|stats| signed(stats.counts.activities_open)))
        .build();
    meter
        .i64_observable_up_down_counter("durable.timers")
        .with_unit("{timer}")
        .with_description("Timers and messages that wait for their moment")
        .with_callback(watched.figure(|stats| signed(stats.counts.timers)))
        .build();
}

/// Contents of memory.
fn observe_holdings(meter: &Instruments, watched: &MetricSource) {
    meter
        .i64_observable_up_down_counter("durable.instances")
        .with_unit("{instance}")
        .with_description("Orchestrations and entities held, by status")
        .with_callback(watched.figures("durable.instance.status", |stats| {
            Status::ALL.map(|status| (status.as_str(), signed(stats.counts.instances_by_status[status as usize])))
        }))
        .build();
    meter
        .i64_observable_up_down_counter("durable.instances.size")
        .with_unit("By")
        .with_description("About how many bytes instances and their histories hold in memory")
        .with_callback(watched.figure(|stats| signed(stats.counts.instance_bytes)))
        .build();
    meter
        .i64_observable_up_down_counter("durable.held.size")
        .with_unit("By")
        .with_description(
            "About how many bytes count against the bound on memory: instances, messages, timers, waiting activities",
        )
        .with_callback(watched.figure(|stats| signed(stats.counts.held_bytes)))
        .build();
    meter
        .i64_observable_up_down_counter("durable.cursor.size")
        .with_unit("By")
        .with_description("About how many bytes orchestrations hold that are ready to go on")
        .with_callback(watched.figure(|stats| signed(stats.counts.cursor_bytes)))
        .build();
}
