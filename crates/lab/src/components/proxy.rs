//! Common parts of proxies: where requests may go, told by name so that variants can choose, how one place is chosen
//! for each, and a configuration that is generated, tested by the proxy itself before the start, so that what it refuses
//! is one clear error, and kept with everything else of the proxy in the replica's folder.
//!
//! All mean the same by the same keys. A client without the cookie is given a new one, and its first request is sent
//! where that one leads, which is where the later ones go. Proxies behind this one are reported the cookie and the client's
//! address in headers; they hash the same and give no cookie of their own.

use std::time::Duration;

use crate::Error;
use crate::components::workshop::Workshop;
use crate::components::{Launch, Place};
use crate::experiment::Ready;
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::key::{Key, Value, default, parameter, replica, required};
use crate::experiment::grammar::kind::{self, Whole, Words};
use crate::experiment::grammar::shape::{Field, NamedMap, Shape};
use crate::programs::Program;

const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Connections of clients and to upstreams, together.
pub(super) const CONNECTIONS_MAX: u32 = 16_384;
/// Connections that wait to be accepted.
pub(super) const BACKLOG: u32 = 4_096;
/// How a cookie is given: it is kept for an hour.
pub(super) const COOKIE_ATTRIBUTES: &str = "Path=/; HttpOnly; SameSite=Lax; Max-Age=3600";

/// How a program is made a proxy.
pub(super) struct Server {
    pub(super) program: &'static Program,
    /// The account that its Debian package makes for it.
    pub(super) account: &'static str,
    /// The configuration's file.
    pub(super) file: &'static str,
    /// The arguments that start it, with the paths of its folder and its configuration.
    pub(super) arguments: fn(folder: &str, file: &str) -> Vec<String>,
    /// The argument beside these that makes it test the configuration and end.
    pub(super) test: &'static str,
    /// Sign that it listens.
    pub(super) ready: Ready,
}

/// Writes and tests the configuration of a replica and says how it is started.
pub(super) fn prepare(
    server: Server,
    configuration: &str,
    place: &Place<'_>,
    workshop: &mut Workshop<'_>,
) -> Result<Launch, Error> {
    let program = place.find(server.program)?.path;
    let account = place.account(server.account)?;
    place.make_folder(account)?;
    let path = place.folder.join(server.file);
    place.write(&path, configuration, account)?;
    let mut command = vec![program.display().to_string()];
    command.extend((server.arguments)(&place.folder.display().to_string(), &path.display().to_string()));
    let test = command.iter().cloned().chain([server.test.to_owned()]).collect();
    place.run(workshop, test, account, TEST_TIMEOUT, "its configuration is refused")?;
    Ok(Launch { command, cwd: place.folder.clone(), env: Vec::new(), account, ready: server.ready })
}

/// Where a proxy sends requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Routing {
    /// The places: `host:port`, at least one.
    pub(super) upstreams: Vec<String>,
    /// How it chooses among them.
    pub(super) balance: Balance,
    /// The cookie that it gives clients which have none.
    pub(super) cookie: Option<String>,
    /// Idle connections that it keeps to all of them together.
    pub(super) keepalive: u32,
}

/// How an upstream is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Balance {
    /// One after the other.
    RoundRobin,
    /// The one with the fewest requests under way.
    LeastConnections,
    /// By a hash of these, on a ring.
    Hash(Vec<HashKey>),
}

/// Hashed part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HashKey {
    /// The client's address, as a proxy before this one tells it, or that of the connection.
    ClientAddress,
    /// The value of the cookie.
    Cookie,
}

/// Names of `upstreams`.
const UPSTREAMS_MAX: usize = 100;

const URLS: Value<String> = replica(&kind::TEXT);

const UPSTREAMS: Field = required(
    "upstreams",
    Shape::Named(NamedMap { what: "upstream", name: &kind::NAME, value: &URLS.shape(), least: 1, most: UPSTREAMS_MAX }),
    "Where requests may go, by names of your choice: URLs separated by commas, such as `${shop.urls}`.",
);

const TO: Key<String> =
    Key::required("to", parameter(&kind::NAME), "Which of `upstreams` they go to, so that a variant can choose.");

const BALANCE: Key<Choice> = Key::default(
    "balance",
    parameter(&Words(&[
        ("round_robin", Choice::RoundRobin),
        ("least_conn", Choice::LeastConnections),
        ("hash", Choice::Hash),
    ])),
    "round_robin",
    "How one is chosen for each request.",
);

/// [`Balance`] by its word alone.
#[derive(Debug, Clone, Copy)]
enum Choice {
    RoundRobin,
    LeastConnections,
    Hash,
}

const HASHED: Value<HashKey> =
    parameter(&Words(&[("client_address", HashKey::ClientAddress), ("cookie", HashKey::Cookie)]));

const KEY: Field = default(
    "key",
    Shape::List { item: &HASHED.shape(), least: 1, most: 2 },
    "[client_address]",
    "What `hash` hashes, on a ring: the client's address, the cookie's value, or both.",
);

/// The name of a cookie.
pub(super) const COOKIE_NAME: Value<String> = parameter(&kind::NAME);

const COOKIE: Key<String> = Key::optional(
    "cookie",
    COOKIE_NAME,
    "The name of a cookie that clients get, so that `hash` keeps each at its upstream: letters, digits and `_`.",
);

const KEEPALIVE: Key<u32> = Key::default(
    "keepalive",
    parameter(&Whole::new(1, 10_000)),
    "32",
    "How many idle connections it keeps to all upstreams in total.",
);

/// The keys of every proxy.
pub(super) const FIELDS: [Field; 6] = [UPSTREAMS, TO.field, BALANCE.field, KEY, COOKIE.field, KEEPALIVE.field];

/// The values of these keys. `None` after a reported error.
pub(super) fn routing(at: &At<'_>, report: &mut Report) -> Option<Routing> {
    let upstreams = upstreams(at, report)?;
    let cookie = cookie(at, &COOKIE, report)?;
    let balance = match at.read(&BALANCE)? {
        Choice::RoundRobin => Balance::RoundRobin,
        Choice::LeastConnections => Balance::LeastConnections,
        Choice::Hash => Balance::Hash(keys(at, cookie.is_some(), report)?),
    };
    Some(Routing { upstreams, balance, cookie, keepalive: at.read(&KEEPALIVE)? })
}

/// The addresses under the name in `to`.
fn upstreams(at: &At<'_>, report: &mut Report) -> Option<Vec<String>> {
    let (named, to) = (at.get(&UPSTREAMS)?, at.get(&TO)?);
    let Some(chosen) = named.named(to.text()?) else {
        let problem = Problem::new(format!("expected a name of `upstreams`, found `{}`", to.text()?));
        report.add(to.place(), to.path(), problem);
        return None;
    };
    let addresses: Option<Vec<String>> = chosen.text()?.split(',').map(address).collect();
    if addresses.is_none() {
        let problem =
            Problem::new(format!("expected URLs http://HOST:PORT separated by commas, found `{}`", chosen.text()?));
        report.add(chosen.place(), chosen.path(), problem.hint("`${SERVICE.urls}` names all replicas of a service"));
    }
    addresses
}

fn address(url: &str) -> Option<String> {
    let address = url.trim().strip_prefix("http://")?.trim_end_matches('/');
    let (host, port) = address.rsplit_once(':')?;
    let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-[]:".contains(&byte));
    (is_host && port.parse::<u16>().is_ok()).then(|| address.to_owned())
}

/// The name of a cookie under a key, which becomes a part of a variable's in NGINX's configuration. `None` after a
/// reported error.
pub(super) fn cookie(at: &At<'_>, key: &Key<String>, report: &mut Report) -> Option<Option<String>> {
    let Some(cookie) = at.get(key) else { return Some(None) };
    let name = cookie.text()?;
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Some(Some(name.to_owned()));
    }
    let problem = Problem::new(format!("expected letters, digits and `_`, found `{name}`"));
    report.add(cookie.place(), cookie.path(), problem);
    None
}

fn keys(at: &At<'_>, has_cookie: bool, report: &mut Report) -> Option<Vec<HashKey>> {
    let list = at.get(&KEY)?;
    let mut keys = Vec::new();
    for item in list.items() {
        let key = item.value(HASHED)?;
        if key == HashKey::Cookie && !has_cookie {
            let problem = Problem::new("`key` contains `cookie`, but the cookie has no name".to_owned());
            report.add(item.place(), item.path(), problem.hint("name the cookie: `cookie: route`"));
            return None;
        }
        keys.push(key);
    }
    Some(keys)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::experiment::tests::components::errors;

    /// Settings that every proxy refuses, by key.
    pub(in crate::components) fn errors_are_reported(proxy: &str) {
        for (settings, expected) in [
            ("to: all", "`upstreams` is missing"),
            ("upstreams: { all: \"http://127.0.0.1:1\" }, to: al", "expected a name of `upstreams`, found `al`"),
            ("upstreams: { all: \"127.0.0.1:1\" }, to: all", "expected URLs http://HOST:PORT separated by commas"),
            (
                "upstreams: { all: \"http://127.0.0.1:1\" }, to: all, balance: hash, key: [cookie]",
                "`key` contains `cookie`, but the cookie has no name",
            ),
            (
                "upstreams: { all: \"http://127.0.0.1:1\" }, to: all, cookie: a-b",
                "expected letters, digits and `_`, found `a-b`",
            ),
        ] {
            let said = errors(&format!("{proxy}: {{ {settings} }}"));
            assert!(said.contains(expected), "{proxy}: {settings}: {said}");
        }
    }

    #[test]
    fn an_upstream_is_host_and_port_of_a_url() {
        for (url, expected) in [
            ("http://127.0.0.1:80", Some("127.0.0.1:80")),
            (" http://localhost:8080/ ", Some("localhost:8080")),
            ("http://[::1]:1", Some("[::1]:1")),
            ("https://127.0.0.1:80", None),
            ("127.0.0.1:80", None),
            ("http://a:b", None),
            ("http://:80", None),
            ("http://a;b:80", None),
            ("http://a/b:80", None),
            ("", None),
        ] {
            assert_eq!(address(url).as_deref(), expected, "{url}");
        }
    }
}
