//! The system's entries in `narrows demo`.

use narrows_system::{Demo, Length};

/// The engine's log compared with the classic store.
pub const DEMO: Demo = Demo {
    name: "hello-cities",
    about: "durable orchestrations, each step a transaction of its own or all in one log",
    short: Length {
        takes: "under 1 minute",
        time_scale: 1.0,
        repetitions: 1,
        variants: &["classic-1000", "durable-1000", "durable-10000"],
    },
    full: Length { takes: "about 9 minutes", time_scale: 1.0, repetitions: 1, variants: &[] },
    only_full: Some("the gap between the stores grows with the size of a node"),
    needs: None,
    optional: &[],
    experiment: include_str!("../experiment.yaml"),
    files: &[],
};

/// Several nodes that share a hub, with the engine's log and with a transaction for each step.
pub const DEMO_ON_NODES: Demo = Demo {
    name: "hello-cities-nodes",
    about: "durable orchestrations on 4, 8 and 12 nodes, over NATS and PostgreSQL",
    short: Length {
        takes: "about 4 minutes",
        time_scale: 1.0,
        repetitions: 1,
        variants: &["classic-4", "classic-12", "durable-4", "durable-8", "durable-12"],
    },
    full: Length { takes: "about 25 minutes", time_scale: 1.0, repetitions: 1, variants: &[] },
    only_full: Some("throughput grows with the size of the nodes"),
    needs: Some("NATS and PostgreSQL (Debian's packages nats-server, postgresql)"),
    optional: &[],
    experiment: include_str!("../nodes.yaml"),
    files: &[],
};
