//! The system's entry in `narrows demo`.

use narrows_system::{Demo, Length};

/// The engine's log beside the classic store.
pub const DEMO: Demo = Demo {
    name: "hello-cities",
    about: "durable orchestrations, each step a transaction of its own or all in one log",
    short: Length {
        takes: "under 1 minute",
        time_scale: 1.0,
        repetitions: 1,
        variants: &["classic-1000", "durable-1000", "durable-10000"],
    },
    full: Length { takes: "about 4 minutes", time_scale: 1.0, repetitions: 1, variants: &[] },
    needs: None,
    experiment: include_str!("../experiment.yaml"),
    files: &[],
};
