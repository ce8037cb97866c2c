//! `haproxy:`: a proxy of the experiment's own, with a configuration that is generated for it.
//!
//! It listens on 127.0.0.1 with one thread, and on a socket in its folder, at which it is asked about itself. Upstreams
//! are looked at all the time; one that is not there is left out. A request that found no connection, and a GET that got
//! no byte of a response, go to another.

mod gauges;
mod settings;
mod sidecar;

use std::fmt::Write as _;

use rustix::process::Signal;

use crate::Error;
use crate::components::gauges::Gauges;
use crate::components::proxy::{self, BACKLOG, Balance, CONNECTIONS_MAX, COOKIE_ATTRIBUTES, HashKey};
use crate::components::workshop::Workshop;
use crate::components::{Component, Entry, Launch, Place};
use crate::experiment::system::service::READY_TIMEOUT;
use crate::experiment::{Declaration, Protocol, Ready, Url};
use crate::programs::Program;
use gauges::Asker;
use settings::Haproxy;

pub(super) static ENTRY: Entry = Entry {
    declaration: Declaration {
        key: "haproxy",
        doc: "An HAProxy, instead of `run`.",
        shape: &settings::SHAPE,
        protocol: Protocol::Http,
        stop_signal: Signal::TERM,
        ready_timeout: READY_TIMEOUT,
        further_ports: 0,
        replicas: |_| None,
        url: |_| Url::http(),
        check_files: |_, _, _| {},
        read: |at, _, report| Some(ENTRY.settings(settings::from_file(at, report)?)),
    },
    programs: &[&PROGRAM],
    sidecar: Some(&sidecar::KIND),
};

pub(super) static PROGRAM: Program = Program {
    name: "HAProxy",
    used_for: "`haproxy:` and sidecars",
    binary: "haproxy",
    tools: &[],
    folders: &["/usr/sbin"],
    install: "apt-get install haproxy",
};

/// The socket at which it is asked, in its folder, which it works in: so its path is never too long.
const SOCKET: &str = "s";
/// The names of its two sections, as its statistics have them.
const FRONT: &str = "front";
const BACK: &str = "upstreams";

impl Component for Haproxy {
    fn prepare(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<Launch, Error> {
        let server = proxy::Server {
            program: &PROGRAM,
            account: "haproxy",
            file: "haproxy.cfg",
            arguments: |_, file| ["-db", "-f", file].map(str::to_owned).to_vec(),
            test: "-c",
            ready: Ready::Tcp,
        };
        proxy::prepare(server, &self.configuration(place.service.port), place, workshop)
    }

    /// Its port may be another program's until it responds at its own socket, which it does once it has the port.
    fn is_usable(&self, place: &Place<'_>) -> Result<(), String> {
        self.asker(place).read().map(drop)
    }

    fn gauges(&self, place: &Place<'_>) -> Option<Box<dyn Gauges>> {
        Some(Box::new(self.asker(place)))
    }
}

impl Haproxy {
    fn asker(&self, place: &Place<'_>) -> Asker {
        Asker::new(&place.folder, &self.routing.upstreams)
    }

    /// The whole of `haproxy.cfg`, for a proxy that listens on `port`.
    fn configuration(&self, port: u16) -> String {
        format!(
            "global\n    nbthread 1\n    maxconn {CONNECTIONS_MAX}\n    no strict-limits\n    \
             stats socket unix@{SOCKET} mode 600 level user\n\
             defaults\n    mode http\n    timeout connect 5s\n    timeout queue 60s\n    timeout client 60s\n    \
             timeout server 60s\n    timeout http-request 60s\n    timeout http-keep-alive 75s\n\
             frontend {FRONT}\n    bind 127.0.0.1:{port} backlog {BACKLOG}\n{}    default_backend {BACK}\n\
             backend {BACK}\n{}{}{}",
            self.who_asks(),
            self.choice(),
            self.health(),
            self.servers(),
        )
    }

    /// Who the client is, from what proxies before this one say and from its cookie, for the hash and for upstreams.
    fn who_asks(&self) -> String {
        let mut text = String::new();
        let is_known = |name: &str| format!("{{ var(txn.{name}) -m found }}");
        let mut rule = |words: &str| {
            let _ = writeln!(text, "    {words}");
        };
        rule("http-request set-var(txn.client) req.fhdr(x-forwarded-for)");
        rule(&format!("http-request set-var(txn.client) src unless {}", is_known("client")));
        rule("http-request set-header X-Forwarded-For %[var(txn.client)]");
        if let Some(cookie) = &self.routing.cookie {
            let unless = format!("unless {}", is_known("route"));
            rule(&format!("http-request set-var(txn.route) req.cook({cookie})"));
            rule(&format!("http-request set-var(txn.route) req.fhdr(x-sticky-route) {unless}"));
            rule(&format!("http-request set-var(txn.new) uuid() {unless}"));
            rule(&format!("http-request set-var(txn.route) var(txn.new) {unless}"));
            rule("http-request set-header X-Sticky-Route %[var(txn.route)]");
            rule(&format!(
                "http-after-response add-header Set-Cookie \"{cookie}=%[var(txn.new)]; {COOKIE_ATTRIBUTES}\" if {}",
                is_known("new")
            ));
        }
        if let Balance::Hash(keys) = &self.routing.balance {
            let variable = |key: &HashKey| match key {
                HashKey::ClientAddress => "%[var(txn.client)]",
                HashKey::Cookie => "%[var(txn.route)]",
            };
            let key: String = keys.iter().map(variable).collect();
            rule(&format!("http-request set-var-fmt(txn.key) {key}"));
        }
        text
    }

    /// How an upstream is chosen, and what becomes of a request that its upstream does not respond to.
    fn choice(&self) -> String {
        let mut text = match self.routing.balance {
            Balance::RoundRobin => "    balance roundrobin\n",
            Balance::LeastConnections => "    balance leastconn\n",
            Balance::Hash(_) => "    balance hash var(txn.key)\n    hash-type consistent sdbm avalanche\n",
        }
        .to_owned();
        if let Some(sticky) = &self.sticky {
            let _ = writeln!(text, "    cookie {sticky} insert indirect nocache httponly");
        }
        text + "    option redispatch 1\n    retry-on conn-failure empty-response\n    \
                http-request disable-l7-retry unless METH_GET\n"
    }

    fn health(&self) -> String {
        let Some((method, path)) = &self.health.request else { return String::new() };
        let path = path.replace('\'', r"'\''");
        format!(
            "    option httpchk\n    http-check send meth {method} uri '{path}' ver HTTP/1.1 hdr Host localhost\n    \
             http-check expect status 200-399\n"
        )
    }

    /// The upstreams, numbered from 1.
    fn servers(&self) -> String {
        let upstreams = &self.routing.upstreams;
        let share = self.routing.keepalive.div_ceil(upstreams.len().max(1) as u32);
        let interval = self.health.interval.as_millis().max(1);
        let mut text = format!(
            "    default-server check inter {interval}ms fall {} rise {} pool-max-conn {share}",
            self.health.fall, self.health.rise
        );
        if let Some(most) = self.max_connections {
            let _ = write!(text, " maxconn {most}");
        }
        text.push('\n');
        for (address, number) in upstreams.iter().zip(1..) {
            let cookie = if self.sticky.is_some() { format!(" cookie {number}") } else { String::new() };
            let _ = writeln!(text, "    server {number} {address}{cookie}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::components::haproxy::settings::Health;
    use crate::components::proxy::Routing;

    fn haproxy(balance: Balance, cookie: Option<&str>) -> Haproxy {
        let upstreams = vec!["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()];
        Haproxy {
            routing: Routing { upstreams, balance, cookie: cookie.map(str::to_owned), keepalive: 7 },
            sticky: None,
            max_connections: None,
            health: Health { request: None, interval: Duration::from_millis(500), fall: 3, rise: 2 },
        }
    }

    #[test]
    fn the_upstreams_are_chosen_as_asked() {
        let both = "http-request set-var-fmt(txn.key) %[var(txn.client)]%[var(txn.route)]\n";
        for (balance, expected, key) in [
            (Balance::RoundRobin, "balance roundrobin\n", ""),
            (Balance::LeastConnections, "balance leastconn\n", ""),
            (Balance::Hash(vec![HashKey::ClientAddress, HashKey::Cookie]), "balance hash var(txn.key)\n", both),
        ] {
            let text = haproxy(balance, Some("route")).configuration(8080);
            assert!(text.contains(&format!("backend upstreams\n    {expected}")), "{text}");
            assert!(text.contains(key) && text.contains("txn.key") != key.is_empty(), "{text}");
            assert!(
                text.contains("bind 127.0.0.1:8080 ")
                    && text.contains("check inter 500ms fall 3 rise 2 pool-max-conn 4\n")
            );
            assert!(text.ends_with("    server 1 127.0.0.1:1\n    server 2 127.0.0.1:2\n"), "{text}");
        }
    }

    #[test]
    fn cookies_queues_and_looks_are_only_as_asked() {
        let plain = haproxy(Balance::RoundRobin, None).configuration(1);
        for word in ["cookie", "Cookie", "httpchk", " maxconn 5"] {
            assert!(!plain.contains(word), "{word}: {plain}");
        }
        let mut full = haproxy(Balance::RoundRobin, Some("c"));
        full.sticky = Some("at".to_owned());
        full.max_connections = Some(5);
        full.health.request = Some(("GET".to_owned(), "/it's".to_owned()));
        let text = full.configuration(1);
        for words in [
            "add-header Set-Cookie \"c=%[var(txn.new)]; Path=/;",
            "cookie at insert indirect nocache",
            "server 2 127.0.0.1:2 cookie 2\n",
            r"send meth GET uri '/it'\''s' ver",
            " maxconn 5\n",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
