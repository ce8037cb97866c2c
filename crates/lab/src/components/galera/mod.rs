//! `galera:`: a private cluster of MariaDB servers that replicate each other's transactions (Galera, wsrep API 26).
//!
//! The first node makes the cluster and is filled; the others join it one after another and take its data by rsync. A
//! node that is started again joins whoever is there; a cluster of one node is made anew over the same data.

mod settings;

use std::path::Path;

use rustix::process::Signal;

use crate::Error;
use crate::components::container::{Container, Endpoint};
use crate::components::gauges::{Gauges, TIMEOUT};
use crate::components::mariadb::{self, Asker, data, status};
use crate::components::workshop::Workshop;
use crate::components::{Component, Entry, Launch, Place, sql};
use crate::experiment::{Declaration, Protocol};
use crate::programs::Program;
use settings::Galera;

/// Ports of a node beside that of its clients: the group's, and those at which it is brought up to date, in parts and
/// as a whole.
const FURTHER_PORTS: usize = 3;
/// How long a node may take until it has what the others have, unless the file says otherwise.
const JOIN_TIMEOUT: &str = "2m";

pub(super) static ENTRY: Entry = Entry {
    declaration: Declaration {
        key: "galera",
        doc: "A cluster of MariaDB servers of the service's own, instead of `run`.",
        shape: &settings::SHAPE,
        protocol: Protocol::Tcp,
        stop_signal: Signal::TERM,
        ready_timeout: JOIN_TIMEOUT,
        further_ports: FURTHER_PORTS,
        replicas: |at| at.read(&settings::NODES),
        url: mariadb::settings::url,
        check_files: sql::check_files,
        read: |at, dir, report| Some(ENTRY.settings(settings::from_file(at, dir, report)?)),
    },
    programs: &[&mariadb::PROGRAM, &LIBRARY, &RSYNC],
    sidecar: None,
};

/// Library that the server loads to be a node.
static LIBRARY: Program = Program {
    name: "Galera",
    used_for: "`galera:`",
    binary: "libgalera_smm.so",
    tools: &[],
    folders: &["/usr/lib/galera", "/usr/lib/galera-4", "/usr/lib64/galera-4", "/usr/lib"],
    install: "apt-get install galera-4",
};

/// Nodes that join take the data of another by it.
static RSYNC: Program = Program {
    name: "rsync",
    used_for: "`galera:`",
    binary: "rsync",
    tools: &[],
    folders: &[],
    install: "apt-get install rsync",
};

const NEW_CLUSTER: &str = "--wsrep-new-cluster";
const STATE: &str = "wsrep_local_state_comment";
const SYNCED: &str = "Synced";

impl Component for Galera {
    fn prepare(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<Launch, Error> {
        let library = place.find(&LIBRARY)?.path;
        let mut launch = self.node.launch(place, workshop, &settings(place, &library))?;
        if place.service.replica == 0 {
            launch.command.push(NEW_CLUSTER.to_owned());
        }
        Ok(launch)
    }

    fn again(&self, place: &Place<'_>, first: &Launch) -> Launch {
        let mut launch = first.clone();
        if place.siblings.len() > 1 {
            launch.command.retain(|word| word != NEW_CLUSTER);
        } else {
            // Of a cluster of one, nobody can have gone on without it. Should this fail, the node says so itself.
            let _ = allow_to_begin(&data(place).join("grastate.dat"));
        }
        launch
    }

    /// Whether the node has what the others have.
    fn is_usable(&self, place: &Place<'_>) -> Result<(), String> {
        match status(place.service.port, STATE, TIMEOUT) {
            Ok(state) if state == SYNCED => Ok(()),
            Ok(state) => Err(format!("it has not joined the cluster: its state is {state:?}, expected {SYNCED:?}")),
            Err(reason) => Err(format!("it has not joined the cluster: its state cannot be read: {reason}")),
        }
    }

    fn once_ready(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<(), Error> {
        if place.service.replica == 0 { self.node.fill(place, workshop) } else { Ok(()) }
    }

    /// A cluster of one, which is a plain server; the replicas of more would have to find each other.
    fn container(&self, endpoint: Endpoint<'_>) -> Result<Container, String> {
        self.node.container(endpoint)
    }

    fn gauges(&self, place: &Place<'_>) -> Option<Box<dyn Gauges>> {
        Some(Box::new(Asker::new(mariadb::local(place.service.port), &["wsrep_"])))
    }
}

/// The settings that make a server a node. Ports: the group's, then those of parts (IST) and of all data (SST).
fn settings(place: &Place<'_>, library: &Path) -> Vec<(&'static str, String)> {
    let [group, ist, sst] = match *place.further_ports() {
        [group, ist, sst] => [group, ist, sst],
        // The entry asks for as many.
        _ => [0; 3],
    };
    let groups: Vec<String> =
        place.siblings.iter().filter_map(|node| Some(format!("127.0.0.1:{}", node.further.first()?))).collect();
    vec![
        ("binlog_format", "ROW".to_owned()),
        ("innodb_autoinc_lock_mode", "2".to_owned()),
        ("wsrep_on", "ON".to_owned()),
        ("wsrep_provider", library.display().to_string()),
        ("wsrep_cluster_name", place.service.name.clone()),
        ("wsrep_cluster_address", format!("gcomm://{}", groups.join(","))),
        ("wsrep_node_name", format!("{}-{}", place.service.name, place.service.replica + 1)),
        ("wsrep_node_address", format!("127.0.0.1:{group}")),
        ("wsrep_node_incoming_address", format!("127.0.0.1:{}", place.service.port)),
        ("wsrep_sst_method", "rsync".to_owned()),
        ("wsrep_sst_receive_address", format!("127.0.0.1:{sst}")),
        (
            "wsrep_provider_options",
            format!(
                "\"gmcast.listen_addr=tcp://127.0.0.1:{group};ist.recv_addr=127.0.0.1:{ist};ist.recv_bind=127.0.0.1:{ist};gcache.size=32M;gcache.dir={}\"",
                data(place).display()
            ),
        ),
    ]
}

/// After a crash a node does not begin a cluster, since others may have gone on.
fn allow_to_begin(state: &Path) -> std::io::Result<()> {
    let text = std::fs::read_to_string(state)?;
    std::fs::write(state, text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"))
}
