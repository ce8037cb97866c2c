//! What `nginx:` and `haproxy:` have in common: where requests may go, told by name so that variants can choose, and how one
//! place is chosen for each.

use super::super::grammar::{default, optional, required};
use super::super::kind::Kind;
use super::super::mistake::{Report, Wrong};
use super::super::read;
use super::super::shape::{Field, Named, Scope, Shape};
use super::super::tree::At;

/// Where a proxy sends requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routing {
    /// The places: `host:port`, at least one.
    pub upstreams: Vec<String>,
    /// How it chooses among them.
    pub balance: Balance,
    /// The cookie that it gives clients which have none.
    pub cookie: Option<String>,
    /// Idle connections that it keeps to all of them together.
    pub keepalive: u32,
}

/// How an upstream is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Balance {
    /// One after the other.
    RoundRobin,
    /// The one with the fewest requests under way.
    LeastConnections,
    /// By a hash of these, on a ring.
    Hash(Vec<HashKey>),
}

/// What is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashKey {
    /// The client's address, as a proxy before this one tells it, or that of the connection.
    ClientAddress,
    /// The value of the cookie.
    Cookie,
}

/// Names of `upstreams`.
const UPSTREAMS_MAX: usize = 100;

static URLS: Shape = Shape::Scalar(Kind::Text, Scope::Replica);
static UPSTREAMS: Shape =
    Shape::Named(Named { what: "upstream", name: Kind::Name, value: &URLS, least: 1, most: UPSTREAMS_MAX });
static TO: Shape = Shape::Scalar(Kind::Name, Scope::Parameters);
static BALANCE: Shape = Shape::Scalar(Kind::Word(&["round_robin", "least_conn", "hash"]), Scope::Parameters);
static KEYS: Shape = Shape::List {
    item: &Shape::Scalar(Kind::Word(&["client_address", "cookie"]), Scope::Parameters),
    least: 1,
    most: 2,
};
static KEEPALIVE: Shape = Shape::Scalar(Kind::Whole(1, 10_000), Scope::Parameters);

/// The name of a cookie.
pub(super) static COOKIE: Shape = Shape::Scalar(Kind::Name, Scope::Parameters);

/// The keys of every proxy.
pub(super) const FIELDS: [Field; 6] = [
    required(
        "upstreams",
        &UPSTREAMS,
        "Where requests may go, by names of your choice: URLs with commas between, such as `${shop.urls}`.",
    ),
    required("to", &TO, "Which of `upstreams` they go to."),
    default("balance", &BALANCE, "round_robin", "How one is chosen for each request."),
    default("key", &KEYS, "[client_address]", "What `hash` hashes: the client's address, the cookie's value, or both."),
    optional("cookie", &COOKIE, "The name of a cookie that clients are given, so that `hash` keeps each where it is."),
    default("keepalive", &KEEPALIVE, "32", "How many idle connections it keeps to all of them together."),
];

/// What these keys say. None when a mistake was told.
pub(super) fn routing(at: &At<'_>, report: &mut Report) -> Option<Routing> {
    let upstreams = upstreams(at, report)?;
    let cookie = cookie(at, "cookie", report)?;
    let balance = match read::text(*at, "balance")?.as_str() {
        "least_conn" => Balance::LeastConnections,
        "hash" => Balance::Hash(keys(at, cookie.is_some(), report)?),
        _ => Balance::RoundRobin,
    };
    Some(Routing { upstreams, balance, cookie, keepalive: read::whole(*at, "keepalive")? })
}

/// The addresses under the name in `to`.
fn upstreams(at: &At<'_>, report: &mut Report) -> Option<Vec<String>> {
    let (named, to) = (at.get("upstreams")?, at.get("to")?);
    let Some(chosen) = named.get(to.text()?) else {
        let wrong = Wrong::new(format!("expected a name of `upstreams`, found `{}`", to.text()?));
        report.add(to.place(), to.path(), wrong);
        return None;
    };
    let addresses: Option<Vec<String>> = chosen.text()?.split(',').map(address).collect();
    if addresses.is_none() {
        let wrong =
            Wrong::new(format!("expected URLs http://HOST:PORT with commas between, found `{}`", chosen.text()?));
        report.add(chosen.place(), chosen.path(), wrong.hint("`${SERVICE.urls}` names all replicas of a service"));
    }
    addresses
}

fn address(url: &str) -> Option<String> {
    let address = url.trim().strip_prefix("http://")?.trim_end_matches('/');
    let (host, port) = address.rsplit_once(':')?;
    let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-[]:".contains(&byte));
    (is_host && port.parse::<u16>().is_ok()).then(|| address.to_owned())
}

/// The name of a cookie under a key, which becomes a part of a variable's in NGINX's configuration. None when a mistake was
/// told.
pub(super) fn cookie(at: &At<'_>, key: &str, report: &mut Report) -> Option<Option<String>> {
    let Some(cookie) = at.get(key) else { return Some(None) };
    let name = cookie.text()?;
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Some(Some(name.to_owned()));
    }
    let wrong = Wrong::new(format!("expected letters, digits and `_`, found `{name}`"));
    report.add(cookie.place(), cookie.path(), wrong);
    None
}

fn keys(at: &At<'_>, has_cookie: bool, report: &mut Report) -> Option<Vec<HashKey>> {
    let list = at.get("key")?;
    let mut keys = Vec::new();
    for item in list.items() {
        let key = if item.text()? == "cookie" { HashKey::Cookie } else { HashKey::ClientAddress };
        if key == HashKey::Cookie && !has_cookie {
            let wrong = Wrong::new("a cookie is hashed, and none is named".to_owned());
            report.add(item.place(), item.path(), wrong.hint("name it: `cookie: route`"));
            return None;
        }
        keys.push(key);
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

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
