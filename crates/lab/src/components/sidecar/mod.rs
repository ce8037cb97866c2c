//! Sidecars: one proxy process beside each replica that asks for one.
//!
//! A sidecar is started as a service of its own, `customer.sidecar`, before the replica it stands beside, and so is
//! capped, sampled, watched and ended as any other. What it does is a list of [hops]; each kind of proxy has a file here
//! that writes the list in the proxy's own words, and the command that runs it. All kinds do the same: loopback only,
//! one thread of work, kept connections, mutual TLS between sidecars from an authority that lives as long as the trial.

mod access_log;
mod certificates;
mod envoy;
mod haproxy;
mod hops;
mod narrows;
mod nginx;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_model::run::sidecar_name;
use rustix::process::Signal;

use super::gauges::Gauges;
use crate::Error;
use crate::experiment::{BoundService, BoundSidecar, Proxy, Ready, Restart, Start};
use crate::programs::Program;
use access_log::AccessLog;
use certificates::Files;
use hops::Hop;

/// Where a trial's certificates lie, below its folder.
const CERTIFICATES: &str = "certificates";
/// A proxy listens at once or not at all.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// Longer than the drain of any of the proxies.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// What a configuration is written from.
#[derive(Debug)]
struct Plan {
    /// The name it is recorded under.
    service: String,
    hops: Vec<Hop>,
    /// None when no hop uses TLS.
    tls: Option<Files>,
    access_log: Option<PathBuf>,
    /// Its own, absolute.
    folder: PathBuf,
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
    program(service, sidecar)?;
    if sidecar.proxy == Proxy::Nginx && hops::of(service, sidecar).iter().any(Hop::is_tcp) {
        nginx::stream_module(&sidecar_name(&service.name))?;
    }
    Ok(())
}

/// The sidecar of a replica as a service to be started before it; none when it has none.
pub(crate) fn companion(service: &BoundService, trial_folder: &Path) -> Result<Option<BoundService>, Error> {
    let Some(sidecar) = &service.sidecar else { return Ok(None) };
    let plan = plan(service, sidecar, trial_folder)?;
    let command = command(service, sidecar, &plan)?;
    Ok(Some(BoundService {
        name: plan.service,
        replica: service.replica,
        port: sidecar.port,
        start: Start::Run { command, ready: ready(sidecar.proxy) },
        cwd: plan.folder,
        env: Vec::new(),
        setup: Vec::new(),
        setup_timeout: READY_PATIENCE,
        ready_timeout: READY_PATIENCE,
        cpus: sidecar.cpus,
        memory_bytes: sidecar.memory_bytes,
        stop_signal: Signal::TERM,
        stop_timeout: STOP_PATIENCE,
        restart: Restart::Never,
        sidecar: None,
        stand_in_ports: Vec::new(),
    }))
}

/// Looks after the access log of a replica's sidecar, where the proxy itself does not keep it within bounds.
pub(crate) fn gauges(service: &BoundService, trial_folder: &Path) -> Option<Box<dyn Gauges>> {
    let sidecar = service.sidecar.as_ref().filter(|sidecar| sidecar.has_access_log)?;
    let path = access_log_in(&folder(service, trial_folder));
    matches!(sidecar.proxy, Proxy::Nginx | Proxy::Envoy).then(|| Box::new(AccessLog::new(path)) as Box<dyn Gauges>)
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

fn command(service: &BoundService, sidecar: &BoundSidecar, plan: &Plan) -> Result<Vec<String>, Error> {
    let write = |name: &str, text: String| {
        let path = plan.folder.join(name);
        std::fs::write(&path, text).map_err(|source| Error::File { what: "write", path: path.clone(), source })?;
        Ok::<_, Error>(path.to_string_lossy().into_owned())
    };
    let program = program(service, sidecar)?.unwrap_or_else(|| "narrows".to_owned());
    Ok(match sidecar.proxy {
        Proxy::None | Proxy::Narrows => narrows::command(program, write("sidecar.json", narrows::render(plan))?),
        Proxy::Haproxy => haproxy::command(program, write("haproxy.cfg", haproxy::render(plan))?),
        Proxy::Nginx => {
            let module =
                if plan.hops.iter().any(Hop::is_tcp) { Some(nginx::stream_module(&plan.service)?) } else { None };
            nginx::command(
                program,
                write("nginx.conf", nginx::render(plan, module.as_deref(), nginx::Rights::own()))?,
                plan,
            )
        }
        Proxy::Envoy => envoy::command(program, write("envoy.json", envoy::render(plan))?),
    })
}

/// What tells that it listens. A connection would be passed on to a replica that is not there yet, so the proxy's word
/// is better where it gives one.
fn ready(proxy: Proxy) -> Ready {
    match proxy {
        Proxy::None | Proxy::Narrows => Ready::Log { text: "inbound listens on".to_owned() },
        Proxy::Haproxy | Proxy::Nginx | Proxy::Envoy => Ready::Tcp,
    }
}

/// Where the proxy lies; none for the one that is part of this program.
fn program(service: &BoundService, sidecar: &BoundSidecar) -> Result<Option<String>, Error> {
    let program: &'static Program = match sidecar.proxy {
        Proxy::None | Proxy::Narrows => return Ok(None),
        Proxy::Haproxy => &haproxy::PROGRAM,
        Proxy::Nginx => &nginx::PROGRAM,
        Proxy::Envoy => &envoy::PROGRAM,
    };
    let found = program.find().map_err(|missing| Error::NoProgram {
        service: sidecar_name(&service.name),
        program: missing.binary.to_owned(),
        places: missing.places,
        package: program.package,
    })?;
    Ok(Some(found.path.to_string_lossy().into_owned()))
}

/// Programs that are sidecars.
pub(crate) fn programs() -> [&'static Program; 3] {
    [&haproxy::PROGRAM, &nginx::PROGRAM, &envoy::PROGRAM]
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
