//! The system's entry in `narrows demo`.

use narrows_system::{Demo, Length};

/// The table and its rows, which the experiment names as `schema.sql`.
pub(crate) const SCHEMA: &str = include_str!("../schema.sql");

/// The chain under load, plain and with sidecars.
pub const DEMO: Demo = Demo {
    name: "customer-360",
    about: "three services in a chain over PostgreSQL, without and with a proxy beside each",
    short: Length {
        takes: "about 1.5 minutes",
        time_scale: 0.1,
        repetitions: 1,
        variants: &[
            "plain-unthrottled",
            "sidecar-unthrottled",
            "plain-equal-rate",
            "sidecar-equal-rate",
            "envoy-unthrottled",
            "envoy-equal-rate",
        ],
    },
    full: Length { takes: "about 65 minutes", time_scale: 1.0, repetitions: 3, variants: &[] },
    only_full: None,
    needs: Some("PostgreSQL (the package postgresql of Debian and Ubuntu)"),
    optional: &[
        ("envoy-unthrottled", "envoy"),
        ("envoy-equal-rate", "envoy"),
        ("envoy-three-beside-each-other", "envoy"),
    ],
    experiment: include_str!("../experiment.yaml"),
    files: &[("schema.sql", SCHEMA), ("spring.yaml", include_str!("../spring.yaml"))],
};
