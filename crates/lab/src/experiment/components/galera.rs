//! `galera:`: what can be written about a cluster of MariaDB servers. Its nodes are the replicas of the service.

use rustix::process::Signal;

use super::super::grammar::{default, optional};
use super::super::kind::Kind;
use super::super::read;
use super::super::shape::{Map, Scope, Shape};
use super::mariadb::{self, Mariadb};
use super::{BoundComponent, Entry, Protocol, sql};

/// Ports of a node beside that of its clients: the group's, and those at which it is brought up to date, in parts and
/// as a whole.
const FURTHER_PORTS: usize = 3;
/// How long a node may take until it has what the others have, unless the file says otherwise.
const JOIN_TIMEOUT: &str = "2m";
/// A cluster of more would need a machine of more.
const NODES_MAX: u64 = 9;

/// A cluster's settings in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Galera {
    /// What each node is.
    pub node: Mariadb,
}

pub(in crate::experiment) static SHAPE: Shape = Shape::Map(Map::of(&[
    default(
        "nodes",
        &Shape::Scalar(Kind::Whole(1, NODES_MAX), Scope::Parameters),
        "3",
        "How many nodes the cluster has. They are the replicas of the service.",
    ),
    default("database", &sql::DATABASE, "test", "The database that is made, and the one that the service's URLs name."),
    optional(
        "sql",
        &sql::FILES,
        "Files of SQL, relative to the experiment file's folder. They are run on the first node, one after the other, before the others join it.",
    ),
    optional("settings", &sql::SETTINGS, "Settings of `[mysqld]` of every node, such as `wsrep_slave_threads: 2`."),
]));

pub(super) static ENTRY: Entry = Entry {
    key: "galera",
    protocol: Protocol::Tcp,
    stop_signal: Signal::TERM,
    ready_timeout: JOIN_TIMEOUT,
    further_ports: FURTHER_PORTS,
    replicas: |at| read::whole(at, "nodes"),
    url: mariadb::url,
    check_files: sql::check_files,
    read: |at, dir, report| {
        let node = mariadb::server(at, dir, is_free, report)?;
        Some(BoundComponent::Galera(Galera { node }))
    },
};

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
