//! `sidecar`: the proxy beside each replica of a service.

use super::grammar::{CORES, FLAG, MEMORY};
use super::key::{Key, parameter};
use super::kind::Words;
use super::shape::{Map, Shape};
use super::tree::At;
use crate::components::sidecar::{self, Kind};

static PROXIES: Words<Option<&Kind>> = Words(&sidecar::CHOICES);

/// None stands for no sidecar.
pub(super) const PROXY: Key<Option<&'static Kind>> = Key::required(
    "proxy",
    parameter(&PROXIES),
    "The proxy; `none` for no sidecar, so that variants can switch it: `proxy: \"${proxy}\"`.",
);

pub(super) const TLS: Key<bool> = Key::default(
    "tls",
    FLAG,
    "false",
    "Whether it uses mutual TLS with the sidecars of other services that also have `tls: true`.",
);

pub(super) const ACCESS_LOG: Key<bool> =
    Key::default("access_log", FLAG, "false", "Whether it writes a line for each request.");

pub(super) const CPUS: Key<f64> =
    Key::optional("cpus", CORES, "How many processor cores each proxy may use. Without it, all.");

pub(super) const MEMORY_CAP: Key<u64> =
    Key::optional("memory", MEMORY, "How much memory each proxy may use. Without it, there is no cap.");

pub(super) const SIDECAR_SHAPE: Shape =
    Shape::Map(Map::new(&[PROXY.field, TLS.field, ACCESS_LOG.field, CPUS.field, MEMORY_CAP.field]));

/// Whether it says that there is none.
pub(super) fn is_none(sidecar: At<'_>) -> bool {
    matches!(sidecar.read(&PROXY), Some(None))
}
