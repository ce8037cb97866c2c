//! The components that stand under a service's own key instead of `run`: what can be written there, and how it is read.
//!
//! A component here is data: a file with its grammar, its settings and an [`Entry`]. What it does on a machine is told
//! in `crate::components`, by the same name. A new one is listed in [`ALL`] and [`BoundComponent`], and as a field and in
//! the rule of `SERVICE` in `grammar.rs`.

use std::path::Path;

use rustix::process::Signal;

use super::grammar::READY_TIMEOUT;
use super::mistake::{Report, Wrong};
use super::tree::At;

mod galera;
mod haproxy;
mod mariadb;
mod nginx;
mod postgres;
mod proxy;
mod sql;

pub use galera::Galera;
pub(super) use galera::SHAPE as GALERA;
pub(super) use haproxy::SHAPE as HAPROXY;
pub use haproxy::{Haproxy, Health};
pub use mariadb::Mariadb;
pub(super) use mariadb::SHAPE as MARIADB;
pub use nginx::Nginx;
pub(super) use nginx::SHAPE as NGINX;
pub use postgres::Postgres;
pub(super) use postgres::SHAPE as POSTGRES;
pub use proxy::{Balance, HashKey, Routing};

/// A component with its settings in one trial.
#[derive(Debug, Clone, PartialEq)]
pub enum BoundComponent {
    /// A PostgreSQL server.
    Postgres(Postgres),
    /// A MariaDB server.
    Mariadb(Mariadb),
    /// A node of a cluster of MariaDB servers.
    Galera(Galera),
    /// NGINX as a proxy.
    Nginx(Nginx),
    /// HAProxy as a proxy.
    Haproxy(Haproxy),
}

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
pub(super) struct Url {
    pub(super) before: String,
    pub(super) after: String,
}

impl Url {
    /// That of a service which speaks HTTP.
    pub(super) fn http() -> Self {
        Self { before: "http://".to_owned(), after: String::new() }
    }
}

/// What the rest of the experiment must know of a kind of component. The functions get what stands under its key, whole.
#[derive(Debug)]
pub(super) struct Entry {
    /// The key.
    pub(super) key: &'static str,
    /// What is spoken at its port.
    pub(super) protocol: Protocol,
    /// The signal that asks it to end, unless the file says another.
    pub(super) stop_signal: Signal,
    /// How long it may take to become ready, unless the file says otherwise.
    pub(super) ready_timeout: &'static str,
    /// Ports of each replica beside the one that its clients use.
    pub(super) further_ports: usize,
    /// How many replicas its own settings ask for; none where `replicas` says it.
    pub(super) replicas: fn(At<'_>) -> Option<u32>,
    /// Its URL.
    pub(super) url: fn(At<'_>) -> Url,
    /// Tells files that are not there; relative ones start from the folder.
    pub(super) check_files: fn(At<'_>, &Path, &mut Report),
    /// Its settings. None when a mistake was told, now or before.
    pub(super) read: fn(At<'_>, &Path, &mut Report) -> Option<BoundComponent>,
}

/// All of them.
pub(super) static ALL: &[&Entry] = &[&postgres::ENTRY, &mariadb::ENTRY, &galera::ENTRY, &nginx::ENTRY, &haproxy::ENTRY];

/// The component of a service and what stands under its key; none for a service with `run`.
pub(super) fn of<'a>(service: &'a At<'a>) -> Option<(&'static Entry, At<'a>)> {
    ALL.iter().find_map(|entry| Some((*entry, service.get(entry.key)?)))
}

/// Tells the keys of services that mean something else beside a component: it knows itself when it is ready.
pub(super) fn check(root: At<'_>, report: &mut Report) {
    let Some(system) = root.get("system") else { return };
    let Some(services) = system.get("services") else { return };
    for (_, service) in services.entries() {
        let Some((entry, _)) = of(&service) else { continue };
        let Some(ready) = service.get("ready") else { continue };
        let is_only_patience = ready.text().is_none() && ready.entries().all(|(key, _)| key == "timeout");
        if !is_only_patience {
            let wrong = Wrong::new(format!("`{}` knows itself when it is ready", entry.key));
            report.add(ready.place(), ready.path(), wrong.hint("only its patience can be given: `{ timeout: 2m }`"));
        }
    }
}

/// Tells that a file which a component needs is not there.
fn check_file(at: At<'_>, path: &Path, report: &mut Report) {
    if !path.is_file() {
        let wrong = Wrong::new(format!("expected a file, found none at {}", path.display()));
        report.add(at.place(), at.path(), wrong.hint("it is relative to the experiment file's folder"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::grammar::SERVICE;
    use super::super::shape::{Rule, Shape};
    use super::*;

    #[test]
    fn every_component_is_a_key_of_services_and_excludes_the_others() {
        let Shape::Map(service) = &SERVICE else { panic!("a service is a map") };
        let exclusive = service.rules.iter().find_map(|rule| match rule {
            Rule::ExactlyOne(keys) => Some(keys.iter().map(|given| given.key).collect::<Vec<_>>()),
            _ => None,
        });
        let keys: Vec<&str> = std::iter::once("run").chain(ALL.iter().map(|entry| entry.key)).collect();
        assert_eq!(exclusive.unwrap(), keys);
        for entry in ALL {
            assert!(service.fields.iter().any(|field| field.key == entry.key), "{}", entry.key);
        }
    }
}
