//! Values that several sections have, and bounds of lists.

use std::time::Duration;

use narrows_model::load::ThinkTime;

use super::key::{Value, literal, optional, parameter};
use super::kind;
use super::shape::{Field, NamedMap, Shape};

/// Most of most things that are listed by hand.
pub(crate) const MANY: usize = 100;

/// Most items of other lists and maps, which programs may write.
pub(crate) const LISTED_MAX: usize = 1000;

pub(crate) const TEXT: Value<String> = literal(&kind::TEXT);
pub(crate) const AMOUNT: Value<f64> = literal(&kind::AMOUNT);
pub(crate) const THINK_TIME: Value<ThinkTime> = parameter(&kind::THINK_TIME);
pub(crate) const DURATION: Value<Duration> = parameter(&kind::DURATION);
pub(crate) const POSITIVE_DURATION: Value<Duration> = parameter(&kind::POSITIVE_DURATION);
pub(crate) const CORES: Value<f64> = parameter(&kind::CORES);
pub(crate) const MEMORY: Value<u64> = parameter(&kind::MEMORY);
pub(crate) const FLAG: Value<bool> = parameter(&kind::BOOLEAN);

/// The key `env`: environment variables with values of the shape `value`.
pub(crate) const fn environment(value: &'static Shape, doc: &'static str) -> Field {
    let variables =
        NamedMap { what: "environment variable", name: &kind::ENVIRONMENT_NAME, value, least: 0, most: LISTED_MAX };
    optional("env", Shape::Named(variables), doc)
}
