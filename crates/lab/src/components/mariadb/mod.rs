//! `mariadb:`: a private MariaDB server.
//!
//! Its data lie in the replica's folder, it listens on 127.0.0.1 and on a socket in that folder, and its one user `root`
//! has no password. It is measured as it is shipped: every setting is MariaDB's own unless the experiment says otherwise.
//! Root starts it under the account that its package made. A cluster of such servers is `galera`.

mod activity;
mod client;
mod gauges;
pub(super) mod settings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::Error;
use crate::components::account::Account;
use crate::components::container::{Container, Endpoint};
use crate::components::gauges::Gauges;
use crate::components::process::Spec;
use crate::components::workshop::{CommandFailure, Workshop};
use crate::components::{Component, Entry, Launch, Place, sql};
use crate::experiment::system::service::READY_TIMEOUT;
use crate::experiment::{Declaration, Protocol, Ready};
use crate::programs::Program;
use settings::Mariadb;

pub(super) use client::{local, status};
pub(super) use gauges::Asker;

pub(super) static ENTRY: Entry = Entry {
    declaration: Declaration {
        key: "mariadb",
        doc: "A MariaDB server of the service's own, instead of `run`.",
        shape: &settings::SHAPE,
        protocol: Protocol::Tcp,
        stop_signal: Signal::TERM,
        ready_timeout: READY_TIMEOUT,
        further_ports: 0,
        replicas: |_| None,
        url: settings::url,
        check_files: sql::check_files,
        read: |at, dir, report| Some(ENTRY.settings(settings::server(at, dir, settings::is_free, report)?)),
    },
    programs: &[&PROGRAM],
    sidecar: None,
};

pub(super) static PROGRAM: Program = Program {
    name: "MariaDB",
    used_for: "`mariadb:` and `galera:`",
    binary: "mariadbd",
    tools: &["mariadb-install-db", "mariadb"],
    folders: &["/usr/sbin", "/usr/bin"],
    install: "apt-get install mariadb-server",
};

/// The account that Debian's package makes.
const ACCOUNT: &str = "mysql";
/// Who owns everything in the database.
const OWNER: &str = "root";
/// Output of a server once it takes queries, whether it is new or recovers.
const READY: &str = "ready for connections";
const INSTALL_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a file of SQL may take.
const SQL_TIMEOUT: Duration = Duration::from_secs(600);

impl Component for Mariadb {
    fn prepare(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<Launch, Error> {
        self.launch(place, workshop, &[])
    }

    fn once_ready(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<(), Error> {
        self.fill(place, workshop)
    }

    fn container(&self, endpoint: Endpoint<'_>) -> Result<Container, String> {
        let Endpoint { address, port } = endpoint;
        let ours =
            [("bind-address", address.to_owned()), ("port", port.to_string()), ("skip-name-resolve", "1".to_owned())];
        let ours = ours.into_iter().map(|(name, value)| (name.to_owned(), value));
        let args = ours.chain(self.settings.iter().cloned()).map(|(name, value)| format!("--{name}={value}"));
        let asked =
            ["mariadb-admin", "--silent", "ping", "-h", "127.0.0.1", "-P", &port.to_string()].map(str::to_owned);
        Ok(Container {
            image: "docker.io/library/mariadb:11.8",
            port: 3306,
            args: args.collect(),
            env: vec![("MARIADB_DATABASE", self.database.clone())],
            password: "MARIADB_ROOT_PASSWORD",
            url: "mysql://root",
            folders: &["/var/lib/mysql", "/run/mysqld"],
            user: 999,
            sql: self.sql.clone(),
            ready: asked.to_vec(),
        })
    }

    fn gauges(&self, place: &Place<'_>) -> Option<Box<dyn Gauges>> {
        Some(Box::new(Asker::new(local(place.service.port), &[])))
    }
}

impl Mariadb {
    /// Makes the data folder and says how the server is started, with further settings of ours.
    pub(super) fn launch(
        &self,
        place: &Place<'_>,
        workshop: &mut Workshop<'_>,
        further: &[(&str, String)],
    ) -> Result<Launch, Error> {
        let found = place.find(&PROGRAM)?;
        let account = place.account(ACCOUNT)?;
        place.make_folder(account)?;
        place.make_folder_at(&temporary(place), account)?;
        make_data(place, &found.tool("mariadb-install-db"), account, workshop)?;
        let configuration = place.folder.join("my.cnf");
        place.write(&configuration, &self.configuration(place, further), account)?;
        let command = vec![text(&found.path), format!("--defaults-file={}", text(&configuration))];
        let ready = Ready::Log { text: READY.to_owned() };
        let env = vec![("TMPDIR".to_owned(), text(&temporary(place)))];
        Ok(Launch { command, cwd: place.folder.clone(), env, account, ready })
    }

    /// The experiment's settings last: where one is given twice, MariaDB takes the last.
    fn configuration(&self, place: &Place<'_>, further: &[(&str, String)]) -> String {
        let ours = [
            ("datadir", text(&data(place))),
            ("tmpdir", text(&temporary(place))),
            // Below the data folder, which it works in: so its path is never too long.
            ("socket", "s.sock".to_owned()),
            ("pid-file", "pid".to_owned()),
            ("port", place.service.port.to_string()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("skip-name-resolve", "1".to_owned()),
        ];
        let ours = ours.iter().chain(further).map(|(name, value)| format!("{name}={value}\n"));
        let theirs = self.settings.iter().map(|(name, value)| format!("{name}={value}\n"));
        std::iter::once("[mysqld]\n".to_owned()).chain(ours).chain(theirs).collect()
    }

    /// Makes the database and runs the files of SQL in it.
    pub(super) fn fill(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<(), Error> {
        let program = place.find(&PROGRAM)?.tool("mariadb");
        let create = format!("CREATE DATABASE IF NOT EXISTS `{}`", self.database);
        run_sql(place, workshop, &program, None, &create)?;
        self.sql.iter().try_for_each(|file| {
            run_sql(place, workshop, &program, Some(&self.database), &format!("source {}", file.display()))
        })
    }
}

fn make_data(
    place: &Place<'_>,
    program: &Path,
    account: Option<Account>,
    workshop: &mut Workshop<'_>,
) -> Result<(), Error> {
    let command = vec![
        text(program),
        "--no-defaults".to_owned(),
        format!("--datadir={}", text(&data(place))),
        // Root's own may be closed to the account.
        format!("--tmpdir={}", text(&temporary(place))),
        "--skip-test-db".to_owned(),
        "--skip-name-resolve".to_owned(),
        "--auth-root-authentication-method=normal".to_owned(),
    ];
    place.run(workshop, command, account, INSTALL_TIMEOUT, "cannot make its data folder")
}

/// Runs SQL by the client that the package brings, so that its files may hold what people's files hold.
fn run_sql(
    place: &Place<'_>,
    workshop: &mut Workshop<'_>,
    program: &Path,
    database: Option<&str>,
    sql: &str,
) -> Result<(), Error> {
    let service = place.service;
    let mut command: Vec<String> =
        ["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--batch", "--abort-source-on-error"]
            .map(str::to_owned)
            .to_vec();
    command.insert(0, text(program));
    command.extend([format!("--port={}", service.port), format!("--user={OWNER}"), format!("--execute={sql}")]);
    command.extend(database.map(str::to_owned));
    let spec = Spec {
        service: service.name.clone(),
        replica: service.replica,
        command,
        cwd: service.cwd.clone(),
        env: Vec::new(),
        account: None,
        wanted_line: None,
    };
    let botched = |botched: CommandFailure| match first_error(&botched.last_lines) {
        Some(error) => place.failed(error, Vec::new()),
        None => place.failed(format!("`{sql}` failed: mariadb {}", botched.how(SQL_TIMEOUT)), botched.last_lines),
    };
    workshop.run(&spec, SQL_TIMEOUT)?.map_err(botched)
}

/// The error that ended a file, with the file and the line that its statement begins in:
/// `ERROR 1146 (42S02) at line 3 in file: 'a.sql': Table 't' does not exist` as `a.sql:3: ERROR 1146 (42S02): Table …`.
fn first_error(lines: &[String]) -> Option<String> {
    let line = lines.iter().find(|line| line.starts_with("ERROR "))?;
    let placed = || {
        let (code, rest) = line.split_once(" at line ")?;
        let (number, rest) = rest.split_once(" in file: '")?;
        let (file, message) = rest.split_once("': ")?;
        Some(format!("{file}:{number}: {code}: {message}"))
    };
    Some(placed().unwrap_or_else(|| line.clone()))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn temporary(place: &Place<'_>) -> PathBuf {
    place.folder.join("tmp")
}

/// Where a server keeps its data.
pub(super) fn data(place: &Place<'_>) -> PathBuf {
    place.folder.join("data")
}

#[cfg(test)]
mod tests {
    use crate::components::mariadb::first_error;

    #[test]
    fn an_error_of_sql_is_told_with_its_place() {
        let lines = ["--------------", "ERROR 1146 (42S02) at line 3 in file: '/a/b.sql': Table 'x.t' doesn't exist"];
        let expected = "/a/b.sql:3: ERROR 1146 (42S02): Table 'x.t' doesn't exist";
        assert_eq!(first_error(&lines.map(str::to_owned)).as_deref(), Some(expected));
        let bare = "ERROR 2002 (HY000): Can't connect to server on '127.0.0.1' (115)";
        assert_eq!(first_error(&[bare.to_owned()]).as_deref(), Some(bare));
        assert_eq!(first_error(&["nothing".to_owned()]), None);
    }
}
