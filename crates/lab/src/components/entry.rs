//! The declaration of a component: its key and grammar, the programs it needs, its defaults.

use std::path::Path;
use std::sync::Arc;

use rustix::process::Signal;

use super::{ALL, Component, sidecar};
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::{SERVICES, SYSTEM};
use crate::experiment::service::{READY, READY_AFTER};
use crate::experiment::shape::Shape;
use crate::experiment::tree::At;
use crate::programs::Program;

/// The protocol at a port, as far as a proxy in front of it must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP.
    Http,
    /// Bytes.
    Tcp,
}

/// The parts of a service's URL before and after `host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) before: String,
    pub(crate) after: String,
}

impl Url {
    /// The URL of an HTTP service.
    pub(crate) fn http() -> Self {
        Self { before: "http://".to_owned(), after: String::new() }
    }
}

/// A kind of component. The functions get the whole value under its key.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: &'static str,
    /// A sentence for the JSON Schema.
    pub(crate) doc: &'static str,
    /// The grammar of the value under the key.
    pub(crate) shape: &'static Shape,
    /// The programs it needs. A trial does not start without them; `narrows doctor` lists them.
    pub(crate) programs: &'static [&'static Program],
    /// The protocol at its port.
    pub(crate) protocol: Protocol,
    /// The signal that asks it to end, unless the file says another.
    pub(crate) stop_signal: Signal,
    /// How long it may take to become ready, unless the file says otherwise.
    pub(crate) ready_timeout: &'static str,
    /// Ports of each replica beside the one that its clients use.
    pub(crate) further_ports: usize,
    /// The number of replicas from its own settings; `None` if the service's `replicas` decides.
    pub(crate) replicas: fn(At<'_>) -> Option<u32>,
    /// Its URL.
    pub(crate) url: fn(At<'_>) -> Url,
    /// Reports missing files; relative paths start from the folder.
    pub(crate) check_files: fn(At<'_>, &Path, &mut Report),
    /// How its program stands beside a replica as a sidecar; `None` if it cannot.
    pub(crate) sidecar: Option<&'static sidecar::Kind>,
    /// Its settings; `None` if an error was reported, now or before.
    pub(crate) read: fn(At<'_>, &Path, &mut Report) -> Option<Arc<dyn Component>>,
}

/// The component of a service and what stands under its key; `None` for a service with `run`.
pub(crate) fn of<'a>(service: &'a At<'a>) -> Option<(&'static Entry, At<'a>)> {
    ALL.iter().find_map(|entry| Some((*entry, service.named(entry.key)?)))
}

/// Reports a `ready` with more than a timeout beside a component, which has its own readiness check.
pub(crate) fn check(root: At<'_>, report: &mut Report) {
    let Some(system) = root.get(&SYSTEM) else { return };
    let Some(services) = system.get(&SERVICES) else { return };
    for (_, service) in services.entries() {
        let Some((entry, _)) = of(&service) else { continue };
        let Some(ready) = service.get(&READY) else { continue };
        let is_only_timeout = ready.text().is_none() && ready.entries().all(|(key, _)| key == READY_AFTER.name());
        if !is_only_timeout {
            let problem = Problem::new(format!("`{}` allows no readiness check", entry.key));
            report.add(ready.place(), ready.path(), problem.hint("set only `timeout`: `{ timeout: 2m }`"));
        }
    }
}
