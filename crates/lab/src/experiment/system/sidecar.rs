//! `sidecar`: the proxy beside each replica of a service.

use crate::experiment::document::at::At;
use crate::experiment::grammar::key::{Key, parameter, required};
use crate::experiment::grammar::kind::OneOf;
use crate::experiment::grammar::shape::{Map, Shape};
use crate::experiment::grammar::values::{CORES, FLAG, MEMORY};
use crate::experiment::language::kept;

/// The key of a service under which it has one.
pub(crate) const SIDECAR: &str = "sidecar";

const PROXY: &str = "proxy";

/// The word for no sidecar.
const NONE: &str = "none";

pub(crate) const TLS: Key<bool> = Key::default(
    "tls",
    FLAG,
    "false",
    "Whether it uses mutual TLS with the sidecars of other services that also have `tls: true`.",
);

pub(crate) const ACCESS_LOG: Key<bool> =
    Key::default("access_log", FLAG, "false", "Whether it writes a line for each request.");

pub(crate) const CPUS: Key<f64> =
    Key::optional("cpus", CORES, "How many processor cores each proxy may use. Without it, all.");

pub(crate) const MEMORY_CAP: Key<u64> =
    Key::optional("memory", MEMORY, "How much memory each proxy may use. Without it, there is no cap.");

/// The grammar of a sidecar that is one of these proxies.
pub(crate) fn shape(proxies: Vec<&'static str>) -> Shape {
    let words = kept(OneOf(kept([vec![NONE], proxies].concat())));
    let proxy = required(
        PROXY,
        parameter(words).shape(),
        "The proxy; `none` for no sidecar, so that variants can switch it: `proxy: \"${proxy}\"`.",
    );
    Shape::Map(Map::new(kept([proxy, TLS.field, ACCESS_LOG.field, CPUS.field, MEMORY_CAP.field])))
}

/// The name of the proxy; `None` for no sidecar.
pub(crate) fn proxy(sidecar: At<'_>) -> Option<String> {
    let proxy = sidecar.named(PROXY)?.text()?;
    (proxy != NONE).then(|| proxy.to_owned())
}

/// True if it switches the sidecar off.
pub(crate) fn is_none(sidecar: At<'_>) -> bool {
    sidecar.named(PROXY).is_some_and(|proxy| proxy.text() == Some(NONE))
}
