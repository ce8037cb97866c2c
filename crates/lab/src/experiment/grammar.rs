//! The top of the experiment file, which joins its sections.
//!
//! This is data. Each section declares its own keys in the file that reads it, its own name among them. `check.rs` holds a file against them,
//! `complete.rs` fills in defaults and `${…}`, `schema.rs` publishes them, and `reference.rs` writes them into
//! `docs/reference/experiment.md`. A key is one constant in its section's file, listed in the section's shape and read
//! by its name.

use super::declaration::Declaration;
use super::faults::FAULTS;
use super::key::{Key, literal};
use super::kind::{self, Whole};
use super::language::{Language, kept};
use super::load::LOAD;
use super::objective::OBJECTIVES;
use super::published::PUBLISHED;
use super::service;
use super::shape::{Map, Shape};
use super::thresholds::THRESHOLDS;
use super::variant::{PARAMETERS, VARIANTS};

pub(super) const NAME: Key<String> = Key::required(
    "experiment",
    literal(&kind::EXPERIMENT_NAME),
    "The experiment's name; run files are named after it.",
);

pub(super) const SEED: Key<u64> = Key::default(
    "seed",
    literal(&Whole::new(0, u64::MAX)),
    "1",
    "The seed of everything random in a run. The same seed draws the same data in the same order.",
);

impl Language {
    /// The language with these components, and with the names of proxies that can stand beside a replica. Its grammar is
    /// never freed: a program makes one.
    pub(crate) fn new(components: Vec<&'static Declaration>, proxies: Vec<&'static str>) -> Self {
        let components: &[_] = kept(components);
        let service: &_ = kept(service::shape(components, proxies));
        Self { components, service, experiment: kept(experiment(service)) }
    }
}

/// The whole file, with the grammar of one service.
fn experiment(service: &'static Shape) -> Shape {
    Shape::Map(Map::new(kept([
        NAME.field,
        PARAMETERS,
        service::system(service),
        LOAD,
        FAULTS,
        OBJECTIVES,
        VARIANTS,
        PUBLISHED,
        THRESHOLDS,
        SEED.field,
    ])))
}
