//! Components, the servers that an experiment names by a key, one folder each; and the processes of any service.
//!
//! A component's folder holds all of it: its [`Entry`] with its key, grammar, programs and defaults, its settings and how
//! they are read (`settings.rs`), what they mean on a machine ([`Component`]), its gauges, its tests. Grammar, checks,
//! JSON Schema, binding, the programs that a trial needs and `narrows doctor` follow from [`ALL`]: the experiment language
//! knows no component, and is handed their declarations ([`language`]).
//!
//! A component is a service like any other: it is started in its turn, capped, sampled and stopped as a service with
//! `run`, and nothing of it is left. What it needs besides (a data folder, a configuration) lies in a folder of its own
//! below the trial's, which goes with the trial; what is to be done there is done by short commands in a [`Workshop`].

use std::sync::LazyLock;

use crate::experiment::{Language, ServerKind, ServerUrl};

pub(crate) mod account;
mod component;
pub(crate) mod container;
pub(crate) mod entry;
pub(crate) mod gauges;
pub(crate) mod output;
mod place;
pub(crate) mod process;
mod proxy;
pub(crate) mod readiness;
mod server_settings;
mod sessions;
pub(crate) mod sidecar;
mod sql;
pub(crate) mod workshop;

mod galera;
mod haproxy;
mod mariadb;
pub(crate) mod nats;
mod nginx;
mod postgres;
mod redis;

pub(crate) use component::{BoundComponent, Component, Launch};
pub(crate) use entry::Entry;
use gauges::Gauges;
pub(crate) use place::Place;

/// All components. A new one has its `mod` line above and its line here.
pub(crate) const ALL: &[&Entry] =
    &[&postgres::ENTRY, &mariadb::ENTRY, &galera::ENTRY, &nginx::ENTRY, &haproxy::ENTRY, &redis::ENTRY, &nats::ENTRY];

/// Reader of the figures of a server that an experiment names by its URL.
pub(crate) fn gauges_of(url: &ServerUrl) -> Box<dyn Gauges> {
    let url = url.clone();
    match url.kind {
        ServerKind::Postgres => Box::new(postgres::Asker::new(url)),
        ServerKind::Mysql => Box::new(mariadb::Asker::new(url, &[])),
        ServerKind::Redis => Box::new(redis::Info::new(url)),
    }
}

/// The experiment language with all components, and all proxies that can stand beside a replica.
pub fn language() -> Language {
    static LANGUAGE: LazyLock<Language> = LazyLock::new(|| {
        let components = ALL.iter().map(|entry| &entry.declaration);
        Language::new(components.collect(), sidecar::kinds().map(|kind| kind.name).collect())
    });
    *LANGUAGE
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Folders that are not components.
    const OTHERS: [&str; 1] = ["sidecar"];

    #[test]
    fn every_folder_is_a_component_by_its_key() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/components");
        let entries = std::fs::read_dir(here).unwrap().map(Result::unwrap);
        let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
        let folders: BTreeSet<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
        let listed: BTreeSet<String> =
            ALL.iter().map(|entry| entry.declaration.key).chain(OTHERS).map(str::to_owned).collect();
        assert_eq!(folders, listed);
    }

    #[test]
    fn the_diagnosis_knows_the_program_of_every_component() {
        for entry in ALL {
            let server = entry.programs[0].binary;
            assert!(
                narrows_diagnose::knows_program(server),
                "{server} is missing in crates/diagnose/src/read/programs.rs"
            );
        }
    }
}
