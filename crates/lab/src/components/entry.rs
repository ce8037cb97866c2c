//! What the rest of the program must know of a component: its key and grammar, the programs that it needs, its defaults.

use std::path::Path;
use std::sync::Arc;

use rustix::process::Signal;

use super::{ALL, Component};
use crate::experiment::mistake::{Report, Wrong};
use crate::experiment::shape::Shape;
use crate::experiment::tree::At;
use crate::programs::Program;

/// What is spoken at a port, as far as a proxy before it must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP.
    Http,
    /// Bytes.
    Tcp,
}

/// What stands before and after `host:port` in a service's URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) before: String,
    pub(crate) after: String,
}

impl Url {
    /// That of a service which speaks HTTP.
    pub(crate) fn http() -> Self {
        Self { before: "http://".to_owned(), after: String::new() }
    }
}

/// A kind of component. The functions get what stands under its key, whole.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: &'static str,
    /// A sentence for the JSON Schema.
    pub(crate) doc: &'static str,
    /// What can be written under the key.
    pub(crate) shape: &'static Shape,
    /// Programs it needs. A trial does not begin without them; `narrows doctor` lists them.
    pub(crate) programs: &'static [&'static Program],
    /// What is spoken at its port.
    pub(crate) protocol: Protocol,
    /// The signal that asks it to end, unless the file says another.
    pub(crate) stop_signal: Signal,
    /// How long it may take to become ready, unless the file says otherwise.
    pub(crate) ready_timeout: &'static str,
    /// Ports of each replica beside the one that its clients use.
    pub(crate) further_ports: usize,
    /// How many replicas its own settings ask for; none where `replicas` says it.
    pub(crate) replicas: fn(At<'_>) -> Option<u32>,
    /// Its URL.
    pub(crate) url: fn(At<'_>) -> Url,
    /// Tells files that are not there; relative ones start from the folder.
    pub(crate) check_files: fn(At<'_>, &Path, &mut Report),
    /// Its settings. None when a mistake was told, now or before.
    pub(crate) read: fn(At<'_>, &Path, &mut Report) -> Option<Arc<dyn Component>>,
}

/// The component of a service and what stands under its key; none for a service with `run`.
pub(crate) fn of<'a>(service: &'a At<'a>) -> Option<(&'static Entry, At<'a>)> {
    ALL.iter().find_map(|entry| Some((*entry, service.get(entry.key)?)))
}

/// Tells the keys of services that mean something else beside a component: it knows itself when it is ready.
pub(crate) fn check(root: At<'_>, report: &mut Report) {
    let Some(system) = root.get("system") else { return };
    let Some(services) = system.get("services") else { return };
    for (_, service) in services.entries() {
        let Some((entry, _)) = of(&service) else { continue };
        let Some(ready) = service.get("ready") else { continue };
        let is_only_timeout = ready.text().is_none() && ready.entries().all(|(key, _)| key == "timeout");
        if !is_only_timeout {
            let wrong = Wrong::new(format!("`{}` allows no readiness check", entry.key));
            report.add(ready.place(), ready.path(), wrong.hint("set only `timeout`: `{ timeout: 2m }`"));
        }
    }
}
