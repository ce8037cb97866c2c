//! `postgres:`: a private PostgreSQL server.
//!
//! Its data lie in the replica's folder, it listens on 127.0.0.1 and on a socket in that folder, and whoever reaches it
//! there is trusted. It is measured as it is shipped: what makes it durable stays on, and every other setting is
//! PostgreSQL's own unless the experiment says otherwise. `pg_stat_statements` is loaded where the machine has it.
//!
//! PostgreSQL refuses to run as root, so root starts it under the account that its package made. Its workers lead
//! sessions of their own and write over their environment; they are found by the folder that they work in.

mod gauges;
mod psql;
mod settings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::Error;
use crate::components::account::Account;
use crate::components::container::{Container, Endpoint};
use crate::components::gauges::Gauges;
use crate::components::workshop::Workshop;
use crate::components::{Component, Entry, Launch, Place, sql};
use crate::experiment::system::service::READY_TIMEOUT;
use crate::experiment::{Declaration, Protocol, Ready, ServerKind, ServerUrl};
use crate::programs::{FoundProgram, Program};
use psql::Psql;
use settings::Postgres;

pub(super) use gauges::Asker;

pub(super) static ENTRY: Entry = Entry {
    declaration: Declaration {
        key: "postgres",
        doc: "A PostgreSQL server of the service's own, instead of `run`.",
        shape: &settings::SHAPE,
        protocol: Protocol::Tcp,
        // A fast shutdown: connections are closed, what was committed is written.
        stop_signal: Signal::INT,
        ready_timeout: READY_TIMEOUT,
        further_ports: 0,
        replicas: |_| None,
        url: settings::url,
        check_files: sql::check_files,
        read: |at, dir, report| Some(ENTRY.settings(settings::from_file(at, dir, report)?)),
    },
    programs: &[&PROGRAM],
    sidecar: None,
};

static PROGRAM: Program = Program {
    name: "PostgreSQL",
    used_for: "`postgres:`",
    binary: "postgres",
    tools: &["initdb", "psql"],
    folders: &["/usr/lib/postgresql", "/usr/bin"],
    install: "apt-get install postgresql",
};

/// The account that Debian's package makes.
const ACCOUNT: &str = "postgres";
/// Who owns everything in the database.
const OWNER: &str = "postgres";
/// The database that every server has.
const FIRST_DATABASE: &str = "postgres";
/// Output of a server once it takes queries, whether it is new or recovers.
const READY: &str = "database system is ready to accept connections";
const INITDB_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest path of a socket, the zero at its end included (`sun_path` of Linux).
const SOCKET_PATH_MAX: usize = 108;
const STATEMENTS: &str = "pg_stat_statements";
const PRELOADED: &str = "shared_preload_libraries";

impl Component for Postgres {
    fn prepare(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<Launch, Error> {
        let found = place.find(&PROGRAM)?;
        let account = place.account(ACCOUNT)?;
        place.make_folder(account)?;
        make_data(place, &found, account, workshop)?;
        let mut command = vec![text(&found.path), "-D".to_owned(), text(&data(place))];
        for (name, value) in self.all_settings(place, &found) {
            command.extend(["-c".to_owned(), format!("{name}={value}")]);
        }
        let ready = Ready::Log { text: READY.to_owned() };
        Ok(Launch { command, cwd: place.folder.clone(), env: Vec::new(), account, ready })
    }

    fn once_ready(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<(), Error> {
        let found = place.find(&PROGRAM)?;
        let psql = Psql::new(place, &found);
        if self.database != FIRST_DATABASE {
            let create = format!("CREATE DATABASE \"{}\"", self.database);
            psql.command(workshop, FIRST_DATABASE, &create)?;
        }
        if self.preloads_statements(&found) {
            psql.command(workshop, &self.database, &format!("CREATE EXTENSION IF NOT EXISTS {STATEMENTS}"))?;
        }
        self.sql.iter().try_for_each(|file| psql.file(workshop, &self.database, file))
    }

    fn container(&self, endpoint: Endpoint<'_>) -> Result<Container, String> {
        let Endpoint { address, port } = endpoint;
        let ours = [("listen_addresses", address.to_owned()), ("port", port.to_string())];
        let ours = ours.into_iter().map(|(name, value)| (name.to_owned(), value));
        let all = ours.chain(self.settings.iter().cloned());
        let asked = ["pg_isready", "-q", "-U", OWNER, "-h", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned);
        Ok(Container {
            image: "docker.io/library/postgres:17",
            port: 5432,
            args: all.flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]).collect(),
            env: vec![("POSTGRES_DB", self.database.clone()), ("PGDATA", "/var/lib/postgresql/data/files".to_owned())],
            password: "POSTGRES_PASSWORD",
            url: "postgres://postgres",
            folders: &["/var/lib/postgresql/data", "/var/run/postgresql"],
            user: 999,
            sql: self.sql.clone(),
            ready: asked.to_vec(),
        })
    }

    fn gauges(&self, place: &Place<'_>) -> Option<Box<dyn Gauges>> {
        let url = ServerUrl::local(ServerKind::Postgres, place.service.port, OWNER, &self.database);
        Some(Box::new(Asker::new(url)))
    }
}

impl Postgres {
    /// Ours first: where a setting is given twice, PostgreSQL takes the last.
    fn all_settings(&self, place: &Place<'_>, found: &FoundProgram) -> Vec<(String, String)> {
        let mut settings = vec![
            ("port", place.service.port.to_string()),
            ("listen_addresses", "127.0.0.1".to_owned()),
            ("unix_socket_directories", socket_folder(&place.folder, place.service.port)),
            ("log_destination", "stderr".to_owned()),
            ("logging_collector", "off".to_owned()),
            ("lc_messages", "C".to_owned()),
        ];
        if self.preloads_statements(found) {
            settings.push((PRELOADED, STATEMENTS.to_owned()));
        }
        let ours = settings.into_iter().map(|(name, value)| (name.to_owned(), value));
        ours.chain(self.settings.iter().cloned()).collect()
    }

    /// Whether `pg_stat_statements` is loaded: the machine has it, and the experiment does not say what to load.
    fn preloads_statements(&self, found: &FoundProgram) -> bool {
        has_statements(&found.path) && !self.settings.iter().any(|(name, _)| name.eq_ignore_ascii_case(PRELOADED))
    }
}

fn data(place: &Place<'_>) -> PathBuf {
    place.folder.join("data")
}

fn make_data(
    place: &Place<'_>,
    found: &FoundProgram,
    account: Option<Account>,
    workshop: &mut Workshop<'_>,
) -> Result<(), Error> {
    let data = text(&data(place));
    // The files of a database that is gone with the trial need not be on the disk before it begins.
    let initdb =
        [&*text(&found.tool("initdb")), "-D", &data, "-U", OWNER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N"];
    let command = initdb.map(str::to_owned).to_vec();
    place.run(workshop, command, account, INITDB_TIMEOUT, "cannot make its data folder")
}

/// The replica's folder as PostgreSQL writes it in a list; empty if a socket's path would be too long.
fn socket_folder(folder: &Path, port: u16) -> String {
    let path = folder.join(format!(".s.PGSQL.{port}"));
    if path.as_os_str().len() < SOCKET_PATH_MAX { format!("\"{}\"", folder.display()) } else { String::new() }
}

/// Whether this installation has the extension: its library lies beside the server's others.
fn has_statements(server: &Path) -> bool {
    let Some(prefix) = server.canonicalize().ok().and_then(|real| Some(real.parent()?.parent()?.to_owned())) else {
        return false;
    };
    let library = format!("{STATEMENTS}.so");
    ["lib", "lib/postgresql", "lib64/pgsql", "lib64/postgresql"]
        .iter()
        .any(|folder| prefix.join(folder).join(&library).is_file())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_whose_path_is_too_long_is_left_out() {
        assert_eq!(socket_folder(Path::new("/tmp/a b"), 5432), "\"/tmp/a b\"");
        assert_eq!(socket_folder(Path::new(&format!("/{}", "x".repeat(100))), 5432), "");
    }

    #[test]
    fn the_extension_is_looked_for_where_the_server_lies() {
        let root = tempfile::tempdir().unwrap();
        let server = root.path().join("bin/postgres");
        for folder in ["bin", "lib/postgresql"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::fs::write(&server, "").unwrap();
        assert!(!has_statements(&server));
        std::fs::write(root.path().join("lib/postgresql/pg_stat_statements.so"), "").unwrap();
        assert!(has_statements(&server));
        assert!(!has_statements(Path::new("/no/such/server")));
    }
}
