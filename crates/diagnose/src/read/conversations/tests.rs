//! Tests of the call graph that sockets show.

use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::read::Reading;
use crate::thresholds::Thresholds;

const PARTNER: &str = "10.0.0.9:443";
/// Address of the first service of a trial; the next has the next port.
const FIRST: &str = "127.0.0.1:9000";
const SECOND: &str = "127.0.0.1:9001";

fn read<T>(trial: TrialBuilder, of: impl FnOnce(&Conversations) -> T) -> T {
    Reading::with(&trial.build(), &Thresholds::default(), |reading| of(reading.conversations()))
}

fn calls(connections: f64, outstanding: f64, rate: f64) -> CallFigures {
    CallFigures { connections, outstanding, rate, ..CallFigures::default() }
}

/// A shop of two replicas under 8 users whose requests take 100 ms.
fn trial() -> TrialBuilder {
    let load = Load { vus: 8, rate: 80.0, latency_ms: 100.0 };
    TrialBuilder::new("a").service("shop", None).service("shop", None).steady(20, load)
}

fn middle(requests: Option<Bounds>) -> Option<f64> {
    requests.map(|requests| (requests.middle() * 100.0).round() / 100.0)
}

#[test]
fn calls_are_added_up_over_replicas_of_both_ends() {
    let trial = trial()
        .calls(names::GENERATOR, 0, FIRST, |_| calls(8.0, 6.0, 60.0))
        .calls(names::GENERATOR, 0, SECOND, |_| calls(8.0, 2.0, 20.0))
        .calls("shop", 0, PARTNER, |_| calls(4.0, 3.0, 60.0))
        .calls("shop", 1, PARTNER, |_| CallFigures { undecided: 0.5, ..calls(4.0, 1.0, 20.0) });
    read(trial, |conversations| {
        let [load, partner] = &conversations.graph.edges[..] else { panic!("{:?}", conversations.graph) };
        assert_eq!((load.callee.as_str(), load.levels[0].all.connections), ("shop", 16.0));
        let of_replicas: Vec<f64> = load.levels[0].replicas.iter().map(|calls| calls.rate).collect();
        assert_eq!(of_replicas, [60.0, 20.0]);
        assert_eq!((partner.caller.as_str(), partner.callee.as_str()), ("shop", PARTNER));
        assert_eq!(partner.levels[0].replicas, [], "it is outside");
        assert_eq!(partner.levels[0].all.wait_ns(), Some(Bounds { low: 50e6, high: 56.25e6 }));
        assert_eq!(conversations.behind("shop", 0), [(PARTNER, Bounds { low: 4.0, high: 4.5 })]);
    });
}

#[test]
fn what_narrows_asks_a_store_is_no_load() {
    let asked = trial().service("postgres", None).calls(names::GENERATOR, 0, FIRST, |_| calls(8.0, 0.2, 80.0)).calls(
        names::GENERATOR,
        0,
        "127.0.0.1:9002",
        |_| calls(1.0, 0.9, 20.0),
    );
    read(asked, |conversations| {
        assert_eq!(middle(conversations.at_work("shop", 0)), Some(8.0));
        assert_eq!(conversations.at_work("postgres", 0), None);
    });
}

#[test]
fn the_load_is_divided_among_the_services_that_it_calls() {
    let stock = |trial: TrialBuilder| trial.service("stock", None);
    let both = stock(trial())
        .calls(names::GENERATOR, 0, FIRST, |_| calls(4.0, 1.5, 40.0))
        .calls(names::GENERATOR, 0, "127.0.0.1:9002", |_| calls(4.0, 4.5, 40.0))
        .calls("shop", 0, "127.0.0.1:9002", |_| calls(4.0, 1.0, 40.0));
    read(both, |conversations| {
        assert_eq!(middle(conversations.at_work("shop", 0)), Some(2.0), "a quarter of 8");
        assert_eq!(middle(conversations.at_work("stock", 0)), Some(7.0), "three quarters, and those of the shop");
        assert_eq!(conversations.at_work("bank", 0), None);
        assert_eq!(conversations.reached(), HashSet::from(["shop", "stock"]));
    });
}

#[test]
fn a_consumer_that_waits_for_messages_delays_no_request() {
    let consumer = trial().calls("shop", 0, PARTNER, |_| calls(1.0, 1.0, 2.0));
    read(consumer, |conversations| assert_eq!(conversations.behind("shop", 0), [(PARTNER, Bounds::default())]));
    let slow = trial().calls("shop", 0, PARTNER, |_| calls(1.0, 1.0, 12.0));
    read(slow, |conversations| assert_eq!(conversations.behind("shop", 0)[0].1.low, 1.0));
    let look_ups = trial().calls("shop", 0, "10.0.0.2:53", |_| calls(0.0, 2.0, 0.0));
    read(look_ups, |conversations| assert_eq!(conversations.behind("shop", 0)[0].0, NAME_SERVER));
}

#[test]
fn clients_that_are_not_sampled_count_at_the_port_they_call() {
    let port = |port: &'static str| [(names::SERVER_PORT, port)];
    let trial = trial()
        .labelled_series(names::CLIENT_CONNECTIONS, ("shop", 0), &port("9000"), |_| 8.0)
        .labelled_series(names::CLIENT_REQUESTS, ("shop", 0), &port("9000"), |_| 5.0)
        .labelled_series(names::CLIENT_CONNECTIONS, ("shop", 0), &port("9464"), |_| 1.0)
        .labelled_series(names::CLIENT_REQUESTS, ("shop", 0), &port("9464"), |_| 1.0);
    read(trial, |conversations| {
        assert_eq!(middle(conversations.at_work("shop", 0)), Some(5.0), "not those of its metrics");
        assert_eq!(conversations.graph.edges[0].caller, CLIENTS);
    });
}

#[test]
fn a_peer_without_points_has_no_connections_then() {
    let trial = trial()
        .calls("shop", 0, PARTNER, |_| calls(4.0, 3.0, 60.0))
        .calls("shop", 0, "10.0.0.7:80", |_| calls(4.0, 3.0, 60.0));
    let mut trial = trial.build();
    for series in trial.series.iter_mut().filter(|one| one.key.labels.values().any(|peer| peer == "10.0.0.7:80")) {
        series.points.truncate(5);
    }
    Reading::with(&trial, &Thresholds::default(), |reading| {
        let rates: Vec<f64> = reading.conversations().graph.edges.iter().map(|edge| edge.levels[0].all.rate).collect();
        assert_eq!(rates, [15.0, 60.0]);
    });
}
