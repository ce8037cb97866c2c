//! From a service of the file to its replicas.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::bound::{Allotted, BoundService, Ready, Restart, Start};
use super::check::{Pass, check};
use super::complete::complete;
use super::grammar::{READY_TIMEOUT, SERVICE};
use super::mistake::{Report, Wrong};
use super::names::Values;
use super::network::Network;
use super::tree::At;
use super::{quantity, read, request};
use crate::components::{BoundComponent, entry};

/// Checks that the folders which services are started in and the files which components read exist, as far as
/// parameters alone tell which those are: what stands in the trial's folder, or in one named after a port, may come to
/// be. So may any once a setup has run.
pub(super) fn check_folders(root: At<'_>, values: &Values<'_>, dir: &Path, report: &mut Report) {
    let Some(system) = root.get("system") else { return };
    let Some(services) = system.get("services") else { return };
    for (_, at) in services.entries() {
        let node = complete(at.node, &SERVICE, values);
        let whole = at.with(&node);
        match entry::of(&whole) {
            Some((entry, settings)) => (entry.check_files)(settings, dir, report),
            None if at.node.get("cwd").is_some() => check_folder(whole, dir, report),
            None => {}
        }
        if at.get("setup").is_some_and(|setup| setup.items().next().is_some()) {
            return;
        }
    }
}

fn check_folder(service: At<'_>, dir: &Path, report: &mut Report) {
    let Some(at) = service.get("cwd") else { return };
    let Some(text) = at.text() else { return };
    let folder = read::path(dir, text);
    if !folder.is_dir() {
        let wrong = Wrong::new(format!("expected a folder, found none at {}", folder.display()));
        report.add(at.place(), at.path(), wrong.hint("it is relative to the experiment file's folder"));
    }
}

/// All replicas, whole.
pub(super) fn build(
    root: At<'_>,
    values: &Values<'_>,
    network: &Network<'_>,
    dir: &Path,
    report: &mut Report,
) -> Vec<BoundService> {
    let Some(system) = root.get("system") else { return Vec::new() };
    let Some(services) = system.get("services") else { return Vec::new() };
    let mut built = Vec::new();
    for (name, at) in services.entries() {
        for replica in network.of_service(name) {
            let values = Values { replica: Some(replica), ..*values };
            let node = complete(at.node, &SERVICE, &values);
            let built_one = build_one(at.with(&node), replica, network, dir, report);
            built.extend(built_one.map(|service| with_own_defaults(service, at)));
        }
    }
    built
}

fn build_one(
    at: At<'_>,
    replica: &Allotted,
    network: &Network<'_>,
    dir: &Path,
    report: &mut Report,
) -> Option<BoundService> {
    check(at, &SERVICE, Pass::Bound, report);
    let cwd = read::path(dir, at.get("cwd")?.text()?);
    let setup =
        at.get("setup").map_or_else(|| Some(Vec::new()), |setup| setup.items().map(|one| command(one, &cwd)).collect());
    let (ready, ready_timeout) = ready(at.get("ready")?)?;
    let stop = at.get("stop")?;
    let start = match entry::of(&at) {
        Some((entry, settings)) => {
            let component = BoundComponent::new(entry, (entry.read)(settings, dir, report)?);
            Start::Component { component, siblings: network.siblings(replica) }
        }
        None => Start::Run { command: command(at.get("run")?, &cwd)?, ready },
    };
    Some(BoundService {
        name: replica.service.clone(),
        replica: replica.replica,
        port: network.own_port(replica),
        start,
        env: env(at),
        setup: setup?,
        setup_timeout: read::duration(at, "setup_timeout")?,
        ready_timeout,
        cpus: read::number(at, "cpus"),
        memory_bytes: read::bytes(at, "memory"),
        stop_signal: signal(stop.get("signal")?.text()?)?,
        stop_timeout: read::duration(stop, "timeout")?,
        restart: restart(at.get("restart")?.text()?)?,
        sidecar: network.sidecar(replica, at),
        stand_in_ports: network.stand_in_ports(replica),
        cwd,
    })
}

/// What a component does its own way unless the file says otherwise: the signal that ends it, the time until it is ready.
fn with_own_defaults(mut service: BoundService, written: At<'_>) -> BoundService {
    let Some((entry, _)) = entry::of(&written) else { return service };
    let says = |key: &str, inner: &str| written.get(key).is_some_and(|at| at.get(inner).is_some());
    if !says("stop", "signal") {
        service.stop_signal = entry.stop_signal;
    }
    if let (false, Some(timeout)) = (says("ready", "timeout"), quantity::duration(entry.ready_timeout)) {
        service.ready_timeout = timeout;
    }
    service
}

/// Program and arguments; a program with a `/` in it starts from `cwd`.
pub(super) fn command(at: At<'_>, cwd: &Path) -> Option<Vec<String>> {
    let mut words: Vec<String> = at.items().map(|item| item.text().map(str::to_owned)).collect::<Option<_>>()?;
    let program = words.first_mut()?;
    if program.contains('/') {
        *program = read::path(cwd, program).to_string_lossy().into_owned();
    }
    Some(words)
}

/// The environment variables of something that is started.
pub(super) fn env(at: At<'_>) -> Vec<(String, String)> {
    let Some(env) = at.get("env") else { return Vec::new() };
    env.entries().filter_map(|(name, value)| Some((name.to_owned(), value.text()?.to_owned()))).collect()
}

fn ready(at: At<'_>) -> Option<(Ready, Duration)> {
    let http = |text: &str| {
        let (method, path) = request::line(text).ok()?;
        Some(Ready::Http { method: method.to_owned(), path: path.to_owned() })
    };
    match at.text() {
        Some("tcp") => Some((Ready::Tcp, quantity::duration(READY_TIMEOUT)?)),
        Some(line) => Some((http(line)?, quantity::duration(READY_TIMEOUT)?)),
        None => {
            let timeout = read::duration(at, "timeout")?;
            let ready = match (at.get("http"), at.get("log")) {
                (Some(line), _) => http(line.text()?)?,
                (None, Some(text)) => Ready::Log { text: text.text()?.to_owned() },
                (None, None) => Ready::Tcp,
            };
            Some((ready, timeout))
        }
    }
}

fn restart(word: &str) -> Option<Restart> {
    match word {
        "never" => Some(Restart::Never),
        "always" => Some(Restart::Always),
        _ => None,
    }
}

fn signal(name: &str) -> Option<Signal> {
    match name {
        "TERM" => Some(Signal::TERM),
        "INT" => Some(Signal::INT),
        "QUIT" => Some(Signal::QUIT),
        "HUP" => Some(Signal::HUP),
        "KILL" => Some(Signal::KILL),
        _ => None,
    }
}
