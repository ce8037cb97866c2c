//! Where a replica of a component is: its service, its ports, its folder, the programs of this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::components::BoundComponent;
use crate::components::account::Account;
use crate::components::process::Spec;
use crate::components::workshop::Workshop;

use narrows_telemetry::secrets::redact_arguments;

use crate::Error;
use crate::experiment::{BoundService, Settings, Sibling, Start};
use crate::programs::{FoundProgram, Program};

/// See the module.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// The replica.
    pub(crate) service: &'a BoundService,
    /// Its component.
    pub(crate) component: &'a BoundComponent,
    /// The replicas of its service in order, itself included.
    pub(crate) siblings: &'a [Sibling],
    /// Its folder, absolute.
    pub(crate) folder: PathBuf,
}

impl<'a> Place<'a> {
    /// The place of a replica below the trial's folder; `None` if it is no component's.
    pub(crate) fn of(service: &'a BoundService, trial_folder: &Path) -> Option<Self> {
        match &service.start {
            Start::Run { .. } | Start::Elsewhere { .. } => None,
            Start::Component { settings, siblings } => Some(Self::new(service, settings, siblings, trial_folder)),
        }
    }

    /// The place of a replica of a component below the trial's folder.
    pub(crate) fn new(
        service: &'a BoundService,
        settings: &'a Settings,
        siblings: &'a [Sibling],
        trial_folder: &Path,
    ) -> Self {
        let folder = trial_folder.join(format!("{}-{}", service.name, service.replica));
        Self { service, component: BoundComponent::of(settings), siblings, folder }
    }

    /// The ports of this replica that its component asked for beside the first.
    pub(crate) fn further_ports(&self) -> &'a [u16] {
        self.siblings.get(self.service.replica as usize).map_or(&[], |own| &own.further)
    }

    /// A program of this machine. Errors, as the trial would have at its beginning, when it is not there.
    pub(crate) fn find(&self, program: &'static Program) -> Result<FoundProgram, Error> {
        program.find().map_err(|missing| Error::NoProgram {
            service: self.service.name.clone(),
            program: missing.binary.to_owned(),
            places: missing.places,
            install: program.install,
        })
    }

    /// The account that a server which refuses root runs under; none unless this is root.
    pub(crate) fn account(&self, preferred: &str) -> Result<Option<Account>, Error> {
        Account::unprivileged(preferred).map_err(|what| self.failed(what, Vec::new()))
    }

    /// Makes the folder, the account's own.
    pub(crate) fn make_folder(&self, account: Option<Account>) -> Result<(), Error> {
        self.make_folder_at(&self.folder, account)
    }

    /// Makes a folder below it.
    pub(crate) fn make_folder_at(&self, path: &Path, account: Option<Account>) -> Result<(), Error> {
        std::fs::create_dir_all(path).map_err(|source| file_error("create", path, source))?;
        account.map_or(Ok(()), |account| account.give(path))
    }

    /// Writes a file that the account can read.
    pub(crate) fn write(&self, path: &Path, text: &str, account: Option<Account>) -> Result<(), Error> {
        std::fs::write(path, text).map_err(|source| file_error("write", path, source))?;
        account.map_or(Ok(()), |account| account.give(path))
    }

    /// Runs a short command in the folder; `what` it was for begins the error: `cannot make its data folder`.
    pub(crate) fn run(
        &self,
        workshop: &mut Workshop<'_>,
        command: Vec<String>,
        account: Option<Account>,
        timeout: Duration,
        what: &str,
    ) -> Result<(), Error> {
        let spec = Spec {
            service: self.service.name.clone(),
            replica: self.service.replica,
            command,
            cwd: self.folder.clone(),
            env: self.service.env.clone(),
            account,
            wanted_line: None,
        };
        let mut words = spec.command.clone();
        redact_arguments(&mut words);
        let shown = words.join(" ");
        workshop
            .run(&spec, timeout)?
            .map_err(|botched| self.failed(format!("{what}: `{shown}` {}", botched.how(timeout)), botched.last_lines))
    }

    /// The error of this replica: what failed, and what was printed last.
    pub(crate) fn failed(&self, what: String, last_lines: Vec<String>) -> Error {
        Error::Component { service: self.service.name.clone(), what, last_lines }
    }
}

fn file_error(what: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::File { what, path: path.to_owned(), source }
}
