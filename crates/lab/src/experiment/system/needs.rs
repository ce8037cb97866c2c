//! Reads off the services what their network needs: replicas, ports, addresses, sidecars.

use super::network::{Needs, Tls};
use super::service::{PORT, REPLICAS, addresses};
use super::sidecar::{self, SIDECAR, TLS};
use crate::experiment::declaration::Url;
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::check::{Pass, check};
use crate::experiment::grammar::complete::complete;
use crate::experiment::language::Language;
use crate::experiment::placeholders::names::{SERVICES, SYSTEM, Values};

/// The needs of all services, in the order they are started.
pub(crate) fn needs(root: At<'_>, language: Language, values: &Values<'_>, report: &mut Report) -> Vec<Needs> {
    let Some(system) = root.named(SYSTEM) else { return Vec::new() };
    let Some(services) = system.named(SERVICES) else { return Vec::new() };
    let mut all: Vec<Needs> = Vec::new();
    for (name, written) in services.entries() {
        let node = complete(written.node, language.service, values);
        let at = written.with(&node);
        check(at, language.service, Pass::Bound, report);
        check_replicas(written, at, language, report);
        let one = needs_of(name, at, language);
        check_port(at, &one, &all, report);
        all.push(one);
    }
    all
}

fn needs_of(name: &str, at: At<'_>, language: Language) -> Needs {
    let component = language.component(&at);
    let own_count = component.and_then(|(component, at)| (component.replicas)(at));
    let elsewhere = addresses(at);
    let sidecar = at.named(SIDECAR).filter(|sidecar| !sidecar::is_none(*sidecar));
    Needs {
        name: name.to_owned(),
        count: match elsewhere.len() {
            0 => own_count.or_else(|| at.read(&REPLICAS)).unwrap_or(1),
            replicas => replicas as u32,
        },
        port: at.read(&PORT),
        elsewhere,
        url: component.map_or_else(Url::http, |(component, at)| (component.url)(at)),
        component: component.map(|(component, _)| component),
        sidecar: sidecar.map(|at| if at.read(&TLS) == Some(true) { Tls::Mutual } else { Tls::Plain }),
    }
}

/// A component that itself says how many replicas it has allows no `replicas`.
fn check_replicas(written: At<'_>, at: At<'_>, language: Language, report: &mut Report) {
    let Some(replicas) = written.get(&REPLICAS) else { return };
    let Some((component, settings)) = language.component(&at) else { return };
    if (component.replicas)(settings).is_some() {
        let problem = Problem::new(format!("`{}` allows no `replicas`", component.key));
        report.add(replicas.key_place(), written.path(), problem.hint("set `nodes` instead"));
    }
}

fn check_port(at: At<'_>, one: &Needs, earlier: &[Needs], report: &mut Report) {
    let (Some(port), Some(port_at)) = (one.port, at.get(&PORT)) else { return };
    let problem = match earlier.iter().find(|other| other.port == Some(port)) {
        Some(other) => format!("port {port} is taken by `{}`", other.name),
        None if one.count > 1 => {
            format!("a fixed port allows one replica, found {} replicas", one.count)
        }
        None => return,
    };
    let hint = "without `port`, each replica gets its own";
    report.add(port_at.place(), port_at.path(), Problem::new(problem).hint(hint));
}
