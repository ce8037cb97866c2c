//! Figures of the pool, as metrics by OpenTelemetry's conventions for database clients.
//!
//! The instruments observe counts that the pool keeps anyway, once per export and never per query.

use std::sync::{Arc, Weak};

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use super::database::{Database, PoolState};

/// The name of the one pool.
const POOL: &str = "name";

/// An instrument's name, its unit, and what it reads.
type Reading = (&'static str, &'static str, fn(PoolState) -> usize);

/// Reports the state of `database` for as long as it is there.
pub(super) fn observe(meter: &Meter, database: &Arc<Database>) {
    let pool = || KeyValue::new("db.client.connection.pool.name", POOL);
    let weak = Arc::downgrade(database);
    meter
        .i64_observable_up_down_counter("db.client.connection.count")
        .with_unit("{connection}")
        .with_callback({
            let weak = Weak::clone(&weak);
            move |observer| {
                let Some(PoolState { used, idle, .. }) = state(&weak) else { return };
                for (name, count) in [("used", used), ("idle", idle)] {
                    observer.observe(number(count), &[pool(), KeyValue::new("db.client.connection.state", name)]);
                }
            }
        })
        .build();
    let readings: [Reading; 2] = [
        ("db.client.connection.max", "{connection}", |state| state.max),
        ("db.client.connection.pending_requests", "{request}", |state| state.waiting),
    ];
    for (name, unit, reading) in readings {
        let weak = Weak::clone(&weak);
        meter
            .i64_observable_up_down_counter(name)
            .with_unit(unit)
            .with_callback(move |observer| {
                if let Some(state) = state(&weak) {
                    observer.observe(number(reading(state)), &[pool()]);
                }
            })
            .build();
    }
    meter
        .u64_observable_counter("db.client.connection.timeouts")
        .with_unit("{timeout}")
        .with_callback(move |observer| {
            if let Some(state) = state(&weak) {
                observer.observe(state.timeouts as u64, &[pool()]);
            }
        })
        .build();
}

fn state(database: &Weak<Database>) -> Option<PoolState> {
    Some(database.upgrade()?.state())
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
