//! OpenTelemetry metrics of a node. A node that was closed and dropped is not observed any more.

use std::sync::{Arc, Weak};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};

use super::Shared;

/// A callback that observes one figure of the node.
fn figure<T: 'static>(
    shared: &Weak<Shared>,
    figure: impl Fn(&Shared) -> T + Send + Sync + 'static,
) -> impl Fn(&dyn AsyncInstrument<T>) + Send + Sync + 'static {
    let shared = Weak::clone(shared);
    move |observer| {
        if let Some(shared) = shared.upgrade() {
            let name = KeyValue::new("durable.node.name", shared.options.name.clone());
            observer.observe(figure(&shared), &[name]);
        }
    }
}

/// Makes all instruments.
pub(super) fn observe(meter: &Meter, shared: &Arc<Shared>) {
    let shared = Arc::downgrade(shared);
    meter
        .f64_observable_gauge("durable.node.lease.left")
        .with_unit("s")
        .with_description("How long the node may act without another beat; 0 once its lease has run out")
        .with_callback(figure(&shared, |shared| shared.fence.left().map_or(0.0, |left: Duration| left.as_secs_f64())))
        .build();
    meter
        .i64_observable_up_down_counter("durable.node.partitions")
        .with_unit("{partition}")
        .with_description("Partitions that run on the node")
        .with_callback(figure(&shared, |shared| i64::try_from(shared.running().len()).unwrap_or(i64::MAX)))
        .build();
    meter
        .u64_observable_counter("durable.node.activities.lent")
        .with_unit("{activity}")
        .with_description("Activities that were given to other nodes because too many waited on this one")
        .with_callback(figure(&shared, |shared| shared.lent.so_far()))
        .build();
    meter
        .i64_observable_up_down_counter("durable.node.peers")
        .with_unit("{node}")
        .with_description("Nodes of the hub that are alive as this node sees it, itself included")
        .with_callback(figure(&shared, |shared| i64::try_from(shared.directory.peers().len()).unwrap_or(i64::MAX)))
        .build();
}
