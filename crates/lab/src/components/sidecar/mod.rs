//! Sidecars: one proxy process beside each replica that asks for one.
//!
//! A sidecar is started as a service of its own, `customer.sidecar`, before the replica it stands beside, and so is
//! capped, sampled, watched and ended as any other. What it does is a list of [hops]; each kind of proxy has a file here
//! that writes the list in the proxy's own words, and the command that runs it. All kinds do the same: loopback only,
//! one thread of work, kept connections, mutual TLS between sidecars from an authority that lives as long as the trial.

mod access_log;
pub(super) mod certificates;
mod envoy;
pub(super) mod hops;
mod narrows;
#[cfg(test)]
pub(super) mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_model::run::sidecar_name;
use rustix::process::Signal;

use crate::Error;
use crate::components::gauges::Gauges;
use crate::experiment::{BoundService, BoundSidecar, Ready, Restart, Start};
use crate::programs::Program;
use access_log::AccessLog;
use certificates::Files;
use hops::Hop;

/// Where a trial's certificates lie, below its folder.
const CERTIFICATES: &str = "certificates";
/// A proxy listens at once or not at all.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than the drain of any of the proxies.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A kind of proxy that can stand beside a replica.
pub(crate) struct Kind {
    /// As experiments name it.
    pub(crate) name: &'static str,
    /// `None`: the one that is part of this program.
    pub(super) program: Option<&'static Program>,
    /// Sign that it listens. A connection would be passed on to a replica that is not there yet, so the proxy's
    /// word is better where it gives one.
    pub(super) ready: fn() -> Ready,
    /// Who keeps its access log within bounds.
    pub(super) access_log: LogBound,
    /// Errors when the sidecar of that name cannot have these hops on this machine.
    pub(super) look: fn(&str, &[Hop]) -> Result<(), Error>,
    /// Writes its configuration and says how the program is started with it.
    pub(super) command: fn(String, &Plan) -> Result<Vec<String>, Error>,
}

/// Who keeps an access log within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogBound {
    /// The proxy itself.
    Own,
    /// [`AccessLog`].
    Ours,
}

/// The kinds that are no components; a component declares its own in its [`Entry`](super::Entry).
const OTHERS: [&Kind; 2] = [&narrows::KIND, &envoy::KIND];

/// All kinds, in the order in which messages list them.
pub(crate) fn kinds() -> impl Iterator<Item = &'static Kind> {
    OTHERS.into_iter().chain(super::ALL.iter().filter_map(|entry| entry.sidecar))
}

impl Kind {
    /// The kind of a sidecar.
    ///
    /// # Panics
    /// If no proxy has its name, which the experiment language refuses.
    fn of(sidecar: &BoundSidecar) -> &'static Self {
        let name = &sidecar.proxy;
        kinds().find(|kind| kind.name == name).unwrap_or_else(|| panic!("no kind of sidecar is named `{name}`"))
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Input of a configuration.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The name it is recorded under.
    pub(super) service: String,
    pub(super) hops: Vec<Hop>,
    /// `None` if no hop uses TLS.
    pub(super) tls: Option<Files>,
    pub(super) access_log: Option<PathBuf>,
    /// Its own, absolute.
    pub(super) folder: PathBuf,
}

/// Makes the certificates of a trial's sidecars, once and for all of them: nobody can sign another afterwards.
pub(crate) fn certify(services: &[BoundService], trial_folder: &Path) -> Result<(), Error> {
    let uses_tls = |service: &&BoundService| service.sidecar.as_ref().is_some_and(|sidecar| sidecar.tls_port.is_some());
    let mut names: Vec<&str> = services.iter().filter(uses_tls).map(|service| service.name.as_str()).collect();
    names.dedup();
    if names.is_empty() { Ok(()) } else { certificates::make(&trial_folder.join(CERTIFICATES), &names) }
}

/// Errors when the proxy of a sidecar is not on this machine, or cannot do what is asked of it.
pub(crate) fn look_for_program(service: &BoundService) -> Result<(), Error> {
    let Some(sidecar) = &service.sidecar else { return Ok(()) };
    let kind = Kind::of(sidecar);
    program(service, kind)?;
    (kind.look)(&sidecar_name(&service.name), &hops::of(service, sidecar))
}

/// The sidecar of a replica as a service to be started before it; `None` if it has none.
pub(crate) fn companion(service: &BoundService, trial_folder: &Path) -> Result<Option<BoundService>, Error> {
    let Some(sidecar) = &service.sidecar else { return Ok(None) };
    let plan = plan(service, sidecar, trial_folder)?;
    let kind = Kind::of(sidecar);
    let command = (kind.command)(program(service, kind)?, &plan)?;
    Ok(Some(BoundService {
        name: plan.service,
        replica: service.replica,
        port: sidecar.port,
        start: Start::Run { command, ready: (kind.ready)() },
        cwd: plan.folder,
        env: Vec::new(),
        setup: Vec::new(),
        setup_timeout: READY_TIMEOUT,
        ready_timeout: READY_TIMEOUT,
        cpus: sidecar.cpus,
        memory_bytes: sidecar.memory_bytes,
        stop_signal: Signal::TERM,
        stop_timeout: STOP_TIMEOUT,
        restart: Restart::Never,
        image: None,
        sidecar: None,
        stand_in_ports: Vec::new(),
    }))
}

/// The configuration of Narrows' own proxy beside a service, with the files of a Kubernetes Secret in a folder for certificates.
pub(crate) fn hop_list(
    service: &BoundService,
    sidecar: &BoundSidecar,
    certificates: Option<&Path>,
    access_log: Option<&Path>,
) -> serde_json::Value {
    let files = |folder: &Path| Files {
        ca: folder.join("ca.crt"),
        certificate: folder.join("tls.crt"),
        key: folder.join("tls.key"),
    };
    narrows::configuration(&Plan {
        service: sidecar_name(&service.name),
        hops: hops::of(service, sidecar),
        tls: certificates.map(files),
        access_log: access_log.map(Path::to_owned),
        folder: PathBuf::new(),
    })
}

/// Looks after the access log of a replica's sidecar, where the proxy itself does not keep it within bounds.
pub(crate) fn gauges(service: &BoundService, trial_folder: &Path) -> Option<Box<dyn Gauges>> {
    let sidecar = service.sidecar.as_ref().filter(|sidecar| sidecar.has_access_log)?;
    let path = access_log_in(&folder(service, trial_folder));
    (Kind::of(sidecar).access_log == LogBound::Ours).then(|| Box::new(AccessLog::new(path)) as Box<dyn Gauges>)
}

fn plan(service: &BoundService, sidecar: &BoundSidecar, trial_folder: &Path) -> Result<Plan, Error> {
    let folder = folder(service, trial_folder);
    std::fs::create_dir_all(&folder).map_err(|source| Error::File { what: "create", path: folder.clone(), source })?;
    let tls = sidecar.tls_port.map(|_| Files::of(&trial_folder.join(CERTIFICATES), &service.name));
    Ok(Plan {
        service: sidecar_name(&service.name),
        hops: hops::of(service, sidecar),
        tls,
        access_log: sidecar.has_access_log.then(|| access_log_in(&folder)),
        folder,
    })
}

impl Plan {
    /// Writes a file into its folder. Returns the path.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<String, Error> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).map_err(|source| Error::File { what: "write", path: path.clone(), source })?;
        Ok(path.to_string_lossy().into_owned())
    }
}

/// Where the proxy lies; `narrows` for the one that is part of this program.
fn program(service: &BoundService, kind: &Kind) -> Result<String, Error> {
    let Some(program) = kind.program else { return Ok("narrows".to_owned()) };
    let found = program.find().map_err(|missing| Error::NoProgram {
        service: sidecar_name(&service.name),
        program: missing.binary.to_owned(),
        places: missing.places,
        install: program.install,
    })?;
    Ok(found.path.to_string_lossy().into_owned())
}

/// Programs that are sidecars.
pub(crate) fn programs() -> impl Iterator<Item = &'static Program> {
    kinds().filter_map(|kind| kind.program)
}

/// An error about a sidecar.
pub(crate) fn failed(name: &str, what: &str) -> Error {
    Error::Component { service: name.to_owned(), what: what.to_owned(), last_lines: Vec::new() }
}

fn folder(service: &BoundService, trial_folder: &Path) -> PathBuf {
    trial_folder.join(format!("{}-{}", sidecar_name(&service.name), service.replica))
}

fn access_log_in(folder: &Path) -> PathBuf {
    folder.join("access.log")
}
