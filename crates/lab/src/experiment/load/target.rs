//! Where the load goes and how it gets there: target, protocol, TLS, and the addresses it comes from.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use narrows_model::load::{Tls, Trust};
use serde_json::json;

use super::address::{self, Scheme};
use super::client_addresses::{self, CLIENT_ADDRESSES};
use crate::experiment::bound::{Bindings, HostPort, ReplicaPorts};
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::key::{Key, literal, optional, parameter};
use crate::experiment::grammar::kind::{self, AS_TEXT, AnyKind, Simple, is_name, no_hint, owned};
use crate::experiment::grammar::shape::{Field, Map, Rule, Shape};
use crate::experiment::grammar::values::FLAG;
use crate::experiment::language::Language;
use crate::experiment::paths;
use crate::experiment::placeholders::names::Names;

/// Larger files of authorities are refused; the whole list of a browser is a fifth of it.
const AUTHORITIES_BYTES_MAX: u64 = 1 << 20;

/// A service's name, `http://host:port` or `https://host:port`.
pub(crate) static TARGET_TEXT: Simple<String> = Simple {
    expected: "the name of a service or `http://host:port`",
    name: "service or URL",
    written: AS_TEXT,
    read: |text| {
        if text.contains([':', '/']) {
            address::parse(text).map(|_| text.to_owned()).map_err(Some)
        } else {
            owned(text, is_name(text))
        }
    },
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9_-]*|https?://[^/]+/?)$" }),
};

/// The name of a server in its certificate.
static SERVER_NAME_TEXT: Simple<String> = Simple {
    expected: "a DNS name or an address",
    name: "DNS name or address",
    written: AS_TEXT,
    read: |text| owned(text, address::is_server_name(text)),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": address::SERVER_NAME_PATTERN }),
};

const INSECURE: Key<bool> = Key::optional("insecure", FLAG, "Whether any certificate is accepted. Without it, no.");

const CA: Key<String> = Key::optional(
    "ca",
    parameter(&kind::TEXT),
    "A PEM file with the only authorities to trust, relative to the experiment file's folder. Without it, those of the system.",
);

const SERVER_NAME: Key<String> = Key::optional(
    "server_name",
    parameter(&SERVER_NAME_TEXT),
    "The server name that is sent (SNI) and verified. Without it, the target's host; for a service, `127.0.0.1`.",
);

/// `load.tls`.
const TLS_SHAPE: Shape = Shape::Map(Map {
    fields: &[INSECURE.field, CA.field, SERVER_NAME.field],
    rules: &[Rule::AtMostOne([INSECURE.given(), CA.given()])],
    others: None,
});

pub(crate) const TARGET: Key<String> = Key::optional(
    "target",
    literal(&TARGET_TEXT),
    "A service of this file, or `http://host:port` or `https://host:port` of a system that already runs. Users are spread over a \
     service's replicas.",
);

pub(crate) const TLS: Field = optional(
    "tls",
    TLS_SHAPE,
    "How the connection is encrypted and what is verified. Without it, `{}` with `https://`, else no TLS.",
);

/// Where the load goes.
pub(crate) struct Target {
    /// The replicas of a service; empty while a host is still to be resolved.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The value of the `Host` header.
    pub(crate) host: String,
    /// `None`: a service, whose scheme `tls` decides.
    scheme: Option<Scheme>,
    /// The host alone.
    name: String,
}

impl Target {
    /// Finds the target; `None` if there is none, or after an error that was reported, now or before.
    pub(crate) fn find(
        load: At<'_>,
        root: At<'_>,
        language: Language,
        bindings: &Bindings,
        report: &mut Report,
    ) -> Option<Self> {
        let at = load.get(&TARGET)?;
        let text = at.text()?;
        if let Ok(address) = address::parse(text) {
            let (host, name) = (address.authority.to_owned(), address.host().to_owned());
            return Some(Self { addresses: Vec::new(), host, scheme: Some(address.scheme), name });
        }
        if let Some(first) = bindings.of_service(text).next() {
            let name = first.host.name.clone();
            let host = HostPort { host: name.clone(), port: first.port }.to_string();
            let addresses = bindings.of_service(text).map(ReplicaPorts::address).collect();
            return Some(Self { addresses, host, scheme: None, name });
        }
        let names = Names::of(root.node, language);
        let services = names.services()?;
        if TARGET_TEXT.is_met_by(at.node) && !services.contains(&text) {
            let problem = Problem::unknown("service", text, services.iter().copied());
            let problem =
                if services.is_empty() { problem.hint("describe it under `system.services`") } else { problem };
            report.add(at.place(), at.path(), problem);
        }
        None
    }

    /// The addresses to connect from; `None` for the kernel's choice.
    pub(crate) fn client_addresses(&self, load: At<'_>, report: &mut Report) -> Option<Vec<IpAddr>> {
        let of_target = self.addresses.first().map(SocketAddr::ip).or_else(|| self.name.parse().ok());
        load.get(&CLIENT_ADDRESSES)
            .map_or_else(|| Some(Vec::new()), |at| client_addresses::expand(at, of_target, report))
    }

    /// How the connection is encrypted. An error if one was reported.
    pub(crate) fn tls(&self, load: At<'_>, dir: &Path, report: &mut Report) -> Result<Option<Tls>, ReportedError> {
        let at = load.get(&TLS);
        if let (Some(at), Some(Scheme::Http)) = (&at, self.scheme) {
            let problem =
                Problem::new("`tls` is set, but the target does not use TLS").hint("write the target with `https://`");
            report.add(at.key_place(), at.path(), problem);
            return Err(ReportedError);
        }
        match (at, self.scheme) {
            (None, Some(Scheme::Https)) => Ok(Some(Tls { server_name: self.name.clone(), trust: Trust::System })),
            (None, _) => Ok(None),
            (Some(at), _) => {
                let server_name = at.read(&SERVER_NAME).unwrap_or_else(|| self.name.clone());
                Ok(Some(Tls { server_name, trust: trust(at, dir, report)? }))
            }
        }
    }
}

/// An error was reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReportedError;

fn trust(tls: At<'_>, dir: &Path, report: &mut Report) -> Result<Trust, ReportedError> {
    if let Some(at) = tls.get(&CA) {
        let path = paths::resolve(dir, at.text().ok_or(ReportedError)?);
        return authorities(&path).map(Trust::Authorities).map_err(|message| {
            report.add(at.place(), at.path(), Problem::new(message));
            ReportedError
        });
    }
    Ok(if tls.read(&INSECURE) == Some(true) { Trust::Anything } else { Trust::System })
}

fn authorities(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut bytes = Vec::new();
    let file = narrows_files::open(path).map_err(failed)?;
    file.take(AUTHORITIES_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > AUTHORITIES_BYTES_MAX {
        return Err(format!("{} is larger than {AUTHORITIES_BYTES_MAX} bytes", path.display()));
    }
    const BEGINNING: &[u8] = b"-----BEGIN CERTIFICATE-----";
    if !bytes.windows(BEGINNING.len()).any(|window| window == BEGINNING) {
        return Err(format!("{} has no certificate, expected PEM with at least one", path.display()));
    }
    Ok(bytes)
}
