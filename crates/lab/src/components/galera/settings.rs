//! `galera:`: what can be written about a cluster of MariaDB servers. Its nodes are the replicas of the service.

use std::path::Path;

use crate::components::mariadb::settings as mariadb;
use crate::components::mariadb::settings::Mariadb;
use crate::components::{server_settings, sql};
use crate::experiment::document::at::At;
use crate::experiment::error::Report;
use crate::experiment::grammar::key::{Key, parameter};
use crate::experiment::grammar::kind::Whole;
use crate::experiment::grammar::shape::{Field, Map, Shape};

/// A cluster of more would need a machine of more.
const NODES_MAX: u64 = 9;

/// A cluster's settings in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Galera {
    /// Role of each node.
    pub(super) node: Mariadb,
}

pub(super) const NODES: Key<u32> = Key::default(
    "nodes",
    parameter(&Whole::new(1, NODES_MAX)),
    "3",
    "How many nodes the cluster has, instead of `replicas`. They are the replicas of the service.",
);

const DATABASE: Key<String> = sql::database("test", "The database that is created and that the service's URLs name.");

const SQL: Field = sql::sql(
    "Files of SQL, relative to the experiment file's folder. They are run on the first node, one after the other, before the others join it.",
);

const SETTINGS: Field =
    server_settings::settings("Settings of `[mysqld]` of every node, such as `wsrep_slave_threads: 2`.");

pub(super) static SHAPE: Shape = Shape::Map(Map::new(&[NODES.field, DATABASE.field, SQL, SETTINGS]));

/// A cluster's settings. `None` after a reported error.
pub(super) fn from_file(at: At<'_>, dir: &Path, report: &mut Report) -> Option<Galera> {
    Some(Galera { node: mariadb::server(at, dir, is_free, report)? })
}

/// How the nodes find each other is Narrows' to say; how they work is free.
fn is_free(setting: &str) -> bool {
    let setting = setting.replace('-', "_");
    let of_the_cluster = [
        "wsrep_on",
        "wsrep_provider",
        "wsrep_cluster_name",
        "wsrep_cluster_address",
        "wsrep_node_name",
        "wsrep_node_address",
        "wsrep_node_incoming_address",
        "wsrep_sst_method",
        "wsrep_sst_receive_address",
        "wsrep_provider_options",
        "binlog_format",
        "innodb_autoinc_lock_mode",
    ];
    mariadb::is_free(&setting) && !of_the_cluster.contains(&setting.as_str())
}

#[cfg(test)]
mod tests {
    use crate::experiment::tests::components::service;

    #[test]
    fn nodes_may_take_their_time_to_join_unless_the_file_says_otherwise() {
        assert_eq!(service("galera: { nodes: 1 }").ready_timeout.as_secs(), 120);
        assert_eq!(service("galera: { nodes: 1 }\n      ready: { timeout: 5s }").ready_timeout.as_secs(), 5);
        assert_eq!(service("mariadb: {}").ready_timeout.as_secs(), 30);
    }
}
