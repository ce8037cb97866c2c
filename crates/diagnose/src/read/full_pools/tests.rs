//! Tests of full pools, and of connections that are none.

use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;

const PARTNER: &str = "10.0.0.9:443";
const DATABASE: &str = "10.0.0.7:5432";
const SHOP: &str = "127.0.0.1:9000";

/// A value for each of the three loads: 1, 16 and 32 users.
fn under(values: [f64; 3]) -> impl Fn(u32) -> f64 {
    move |second| values[second as usize / 20]
}

/// Calls with these connections, requests outstanding and rates under each load.
fn calls(connections: [f64; 3], outstanding: [f64; 3], rate: [f64; 3]) -> impl Fn(u32) -> CallFigures {
    move |second| CallFigures {
        connections: under(connections)(second),
        outstanding: under(outstanding)(second),
        rate: under(rate)(second),
        ..CallFigures::default()
    }
}

/// A shop whose throughput is flat at 50 requests a second.
fn trial() -> TrialBuilder {
    let loads = [(1, 10.0, 100.0), (16, 50.0, 320.0), (32, 50.0, 640.0)];
    let steps = loads.into_iter().map(|(vus, rate, latency_ms)| Load { vus, rate, latency_ms });
    steps.fold(TrialBuilder::new("a").service("shop", None), |trial, load| trial.steady(20, load)).calls(
        names::GENERATOR,
        0,
        SHOP,
        calls([1.0, 16.0, 32.0], [1.0, 16.0, 32.0], [10.0, 50.0, 50.0]),
    )
}

fn pool(trial: TrialBuilder) -> Option<FullPool> {
    Reading::with(&trial.build(), &Thresholds::default(), |reading| FullPool::of(reading, "shop", 2))
}

#[test]
fn connections_that_are_all_busy_are_a_full_pool() {
    let busy = trial().calls("shop", 0, PARTNER, calls([5.0, 5.0, 5.0], [1.0, 4.9, 5.0], [10.0, 50.0, 50.0]));
    let pool = pool(busy).unwrap();
    assert_eq!((pool.peer.as_str(), pool.connections, pool.held_for, pool.loads), (PARTNER, 5.0, None, 3));
    assert!((pool.waiting.low - 27.0).abs() < 0.1 && (pool.waiting.high - 27.0).abs() < 0.1, "{:?}", pool.waiting);
}

#[test]
fn a_connection_may_be_held_while_another_peer_is_called() {
    let held = trial().calls("shop", 0, DATABASE, calls([5.0, 5.0, 5.0], [0.1, 0.2, 0.2], [20.0, 100.0, 100.0])).calls(
        "shop",
        0,
        PARTNER,
        calls([1.0, 5.0, 5.0], [0.9, 4.7, 4.7], [10.0, 50.0, 50.0]),
    );
    let pool = pool(held).unwrap();
    assert_eq!((pool.peer.as_str(), pool.held_for.as_deref()), (DATABASE, Some(PARTNER)));
}

#[test]
fn connections_that_are_not_full_hold_nothing_back() {
    let idle = trial().calls("shop", 0, DATABASE, calls([20.0, 20.0, 20.0], [0.5, 4.0, 4.0], [10.0, 50.0, 50.0]));
    assert_eq!(pool(idle), None, "sixteen are idle");
    let grows = trial().calls("shop", 0, PARTNER, calls([1.0, 12.0, 24.0], [0.75, 12.0, 24.0], [10.0, 50.0, 50.0]));
    assert_eq!(pool(grows), None, "as many as are needed");
    let streams = trial().calls("shop", 0, PARTNER, calls([1.0, 1.0, 1.0], [0.9, 1.0, 1.0], [10.0, 500.0, 500.0]));
    assert_eq!(pool(streams), None, "many requests at once on one connection");
    let churned = trial().calls("shop", 0, PARTNER, |second| CallFigures {
        opened: 50.0,
        ..calls([5.0; 3], [5.0; 3], [50.0; 3])(second)
    });
    assert_eq!(pool(churned), None, "a connection for each call");
}

#[test]
fn a_single_connection_that_calls_take_turns_at_is_a_pool_of_one() {
    let single = trial().calls("shop", 0, DATABASE, calls([1.0, 1.0, 1.0], [0.2, 1.0, 1.0], [10.0, 50.0, 50.0]));
    let single = single.calls("shop", 0, PARTNER, calls([1.0, 9.0, 9.0], [0.7, 0.7, 0.7], [10.0, 50.0, 50.0]));
    let pool = pool(single).unwrap();
    assert_eq!((pool.connections, pool.waiting.low.round()), (1.0, 30.0));
}

#[test]
fn few_threads_that_make_the_calls_are_no_pool_of_connections() {
    let busy = || trial().calls("shop", 0, PARTNER, calls([5.0, 5.0, 5.0], [1.0, 4.9, 5.0], [10.0, 50.0, 50.0]));
    let threads = |locked: f64| [(ThreadState::Network, PARTNER, 4.8), (ThreadState::Lock, "", locked)];
    assert_eq!(pool(busy().threads("shop", 0, &threads(2.0))), None, "27 requests wait for a thread");
    assert!(pool(busy().threads("shop", 0, &threads(30.0))).is_some(), "27 threads wait for a connection");
    let events = [(ThreadState::Events, "", 1.0), (ThreadState::Lock, "", 4.0)];
    assert!(pool(busy().threads("shop", 0, &events)).is_some(), "requests need no threads");
}

#[test]
fn requests_that_make_several_calls_at_once_wait_with_calls_under_way() {
    let nine = |connections: [f64; 3], outstanding: [f64; 3]| {
        pool(trial().calls("shop", 0, PARTNER, calls(connections, outstanding, [90.0, 450.0, 450.0])))
    };
    let full = nine([9.0, 45.0, 45.0], [8.1, 42.0, 44.0]).unwrap();
    assert_eq!((full.connections, full.calls_at_once, full.held_for), (45.0, Some(9.0), None));
    // Of 640 ms, a call takes 98 ms; without load, a request takes 10 ms beside it.
    assert!((full.waiting.low - 26.6).abs() < 0.1 && (full.waiting.high - 27.1).abs() < 0.1, "{:?}", full.waiting);
    assert_eq!(nine([9.0, 45.0, 60.0], [8.1, 42.0, 58.0]), None, "as many connections as are needed");
    assert_eq!(nine([9.0, 45.0, 45.0], [8.1, 30.0, 36.0]), None, "nine are idle");
}
