//! The system's entry in `narrows demo`.

use narrows_system::{Demo, Length};

/// The four tests of the case study, the fifth that it proposes, and one with another degree of parallelism.
pub const DEMO: Demo = Demo {
    name: "drone-delivery",
    about: "a gateway that gathers invoices from three services, each test with one more change than the last",
    short: Length {
        takes: "under 3 minutes",
        time_scale: 0.055,
        repetitions: 1,
        variants: &["test-1", "test-2", "test-3", "test-4", "test-5"],
    },
    full: Length { takes: "about 50 minutes", time_scale: 1.0, repetitions: 1, variants: &[] },
    only_full: Some("throughput falls past the peak of test 1"),
    needs: None,
    optional: &[],
    experiment: include_str!("../experiment.yaml"),
    files: &[],
};
