//! The top of the experiment file, which joins its sections.
//!
//! Each section declares its own keys in the file that reads it, its own name among them. A key is one constant in its
//! section's file, listed in the section's shape and read by its name.

use super::key::{Key, literal};
use super::kind::{self, Whole};
use super::shape::{Map, Shape};
use crate::experiment::declaration::Declaration;
use crate::experiment::language::{Language, kept};
use crate::experiment::load::LOAD;
use crate::experiment::objective::OBJECTIVES;
use crate::experiment::observe::OBSERVE;
use crate::experiment::prices::PRICES;
use crate::experiment::published::PUBLISHED;
use crate::experiment::system::faults::FAULTS;
use crate::experiment::system::service;
use crate::experiment::telemetry::TELEMETRY;
use crate::experiment::thresholds::THRESHOLDS;
use crate::experiment::variants::{PARAMETERS, VARIANTS};

pub(crate) const NAME: Key<String> = Key::required(
    "experiment",
    literal(&kind::EXPERIMENT_NAME),
    "The experiment's name; run files are named after it.",
);

pub(crate) const SEED: Key<u64> = Key::default(
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
        OBSERVE,
        TELEMETRY,
        OBJECTIVES,
        VARIANTS,
        PRICES,
        PUBLISHED,
        THRESHOLDS,
        SEED.field,
    ])))
}
