//! The system's entry in `narrows demo`.

use narrows_system::{Demo, Length};

/// The four variants of the case study.
pub const DEMO: Demo = Demo {
    name: "drone-delivery",
    about: "a gateway that gathers invoices from three services, each test with one more change than the last",
    short: Length { takes: "about 2 minutes", time_scale: 0.055, repetitions: 1, variants: &[] },
    full: Length { takes: "about 33 minutes", time_scale: 1.0, repetitions: 1, variants: &[] },
    needs: None,
    experiment: include_str!("../experiment.yaml"),
    files: &[],
};
