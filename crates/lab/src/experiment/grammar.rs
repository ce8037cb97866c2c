//! The top of the experiment file, and what its sections have in common.
//!
//! This is data. Each section declares its own keys in the file that reads it. `check.rs` holds a file against them,
//! `complete.rs` fills in defaults and `${…}`, `schema.rs` publishes them, and `reference.rs` writes them into
//! `docs/reference/experiment.md`. A key is one constant in its section's file, listed in the section's shape and read
//! by its name.

use std::time::Duration;

use super::faults::FAULTS_LIST;
use super::key::{Key, Value, literal, optional, parameter, required};
use super::kind::{self, Whole};
use super::load::LOAD_SHAPE;
use super::objective::OBJECTIVE;
use super::published::PUBLISHED_SHAPE;
use super::service::SERVICE;
use super::shape::{Field, Map, Named, Shape};
use super::variant::{PARAMETER, VARIANT};

/// Most of most things that are listed by hand.
pub(crate) const MANY: usize = 100;

/// Most items of other lists and maps, which programs may write.
pub(super) const LISTED_MAX: usize = 1000;

pub(super) const TEXT: Value<String> = literal(&kind::TEXT);
pub(super) const AMOUNT: Value<f64> = literal(&kind::AMOUNT);
pub(super) const DURATION: Value<Duration> = parameter(&kind::DURATION);
pub(crate) const POSITIVE_DURATION: Value<Duration> = parameter(&kind::POSITIVE_DURATION);
pub(super) const CORES: Value<f64> = parameter(&kind::CORES);
pub(super) const MEMORY: Value<u64> = parameter(&kind::MEMORY);
pub(super) const FLAG: Value<bool> = parameter(&kind::BOOLEAN);

pub(super) const NAME: Key<String> = Key::required(
    "experiment",
    literal(&kind::EXPERIMENT_NAME),
    "The experiment's name; run files are named after it.",
);

pub(super) const PARAMETERS: Field = optional(
    "parameters",
    Shape::Named(Named { what: "parameter", name: &kind::NAME, value: &PARAMETER, least: 0, most: LISTED_MAX }),
    "Names and values that `${name}` stands for. Variants give them other values.",
);

pub(crate) const SYSTEM: Field = optional(
    "system",
    Shape::Map(Map::new(&[SERVICES])),
    "What Narrows starts. Without it, the load goes to a system that already runs.",
);

pub(crate) const SERVICES: Field = required(
    "services",
    Shape::Named(Named { what: "service", name: &kind::NAME, value: &SERVICE, least: 1, most: MANY }),
    "The services by name. They are started in this order, each when the one before it is ready, and stopped in reverse.",
);

pub(super) const LOAD: Field = required("load", LOAD_SHAPE, "What is sent to the system.");

pub(super) const FAULTS: Field = optional("faults", FAULTS_LIST, "What is done to replicas while they are under load.");

pub(super) const OBJECTIVES: Field = optional(
    "objectives",
    Shape::List { item: &OBJECTIVE, least: 0, most: MANY },
    "The objectives of the system under this load, such as `p95 < 300ms`, `error_rate == 0`, `rate >= 100/s`.",
);

pub(super) const VARIANTS: Field = optional(
    "variants",
    Shape::List { item: &VARIANT, least: 1, most: MANY },
    "The versions of the system; all are compared with the first. Without it there is one, `baseline`.",
);

pub(super) const PUBLISHED: Field =
    optional("published", PUBLISHED_SHAPE, "Figures published elsewhere, shown beside the measured ones.");

pub(super) const THRESHOLDS: Field = optional(
    "thresholds",
    Shape::Named(Named { what: "threshold", name: &kind::NAME, value: &AMOUNT.shape(), least: 0, most: LISTED_MAX }),
    "Other values for what detectors compare with, by name; `narrows diagnose --thresholds` lists them.",
);

pub(super) const SEED: Key<u64> = Key::default(
    "seed",
    literal(&Whole::new(0, u64::MAX)),
    "1",
    "The seed of everything random in a run. The same seed draws the same data in the same order.",
);

/// The whole file.
pub(super) static EXPERIMENT: Shape = Shape::Map(Map::new(&[
    NAME.field, PARAMETERS, SYSTEM, LOAD, FAULTS, OBJECTIVES, VARIANTS, PUBLISHED, THRESHOLDS, SEED.field,
]));
