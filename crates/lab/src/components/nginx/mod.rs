//! `nginx:`: a proxy of the experiment's own, with a configuration that is generated for it.
//!
//! It listens on 127.0.0.1 with one worker. Sticky sessions are made without NGINX's commercial `sticky`: a new cookie is
//! the request's own identifier.

mod sidecar;

use std::fmt::Write as _;

use rustix::process::Signal;

use crate::Error;
use crate::components::proxy::{self, BACKLOG, Balance, CONNECTIONS_MAX, COOKIE_ATTRIBUTES, HashKey, Routing};
use crate::components::workshop::Workshop;
use crate::components::{Component, Entry, Launch, Place};
use crate::experiment::grammar::shape::{Map, Shape};
use crate::experiment::system::service::READY_TIMEOUT;
use crate::experiment::{Declaration, Protocol, Ready, Url};
use crate::programs::Program;

pub(super) static ENTRY: Entry = Entry {
    declaration: Declaration {
        key: "nginx",
        doc: "An NGINX proxy, instead of `run`.",
        shape: &SHAPE,
        protocol: Protocol::Http,
        stop_signal: Signal::TERM,
        ready_timeout: READY_TIMEOUT,
        further_ports: 0,
        replicas: |_| None,
        url: |_| Url::http(),
        check_files: |_, _, _| {},
        read: |at, _, report| Some(ENTRY.settings(Nginx { routing: proxy::routing(&at, report)? })),
    },
    programs: &[&PROGRAM],
    sidecar: Some(&sidecar::KIND),
};

static SHAPE: Shape = Shape::Map(Map::new(&proxy::FIELDS));

pub(super) static PROGRAM: Program = Program {
    name: "NGINX",
    used_for: "`nginx:` and sidecars",
    binary: "nginx",
    tools: &[],
    folders: &["/usr/sbin"],
    install: "apt-get install nginx-light",
};

/// A proxy's settings in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Nginx {
    /// Where it sends requests.
    routing: Routing,
}

/// Output once it listens. Before that its port may be another program's, for it tries again while it is taken.
const READY: &str = "start worker process";

impl Component for Nginx {
    fn prepare(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<Launch, Error> {
        let server = proxy::Server {
            program: &PROGRAM,
            account: "www-data",
            file: "nginx.conf",
            arguments: |folder, file| ["-e", "stderr", "-p", folder, "-c", file].map(str::to_owned).to_vec(),
            test: "-t",
            ready: Ready::Log { text: READY.to_owned() },
        };
        proxy::prepare(server, &self.configuration(place.service.port), place, workshop)
    }
}

impl Nginx {
    /// The whole of `nginx.conf`, for a proxy that listens on `port`. Relative paths start from the prefix.
    fn configuration(&self, port: u16) -> String {
        let mut text = format!(
            "daemon off;\nworker_processes 1;\nerror_log stderr notice;\nworker_rlimit_nofile {CONNECTIONS_MAX};\npid nginx.pid;\n\
             events {{ worker_connections {CONNECTIONS_MAX}; }}\nhttp {{\naccess_log off;\n"
        );
        for folder in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            let _ = writeln!(text, "{folder}_temp_path {folder};");
        }
        text += "keepalive_requests 1000000;\n\
                 map $http_x_forwarded_for $client_address { default $http_x_forwarded_for; \"\" $remote_addr; }\n";
        text += &self.maps();
        text += &self.upstream();
        let _ = writeln!(text, "server {{\nlisten 127.0.0.1:{port} backlog={BACKLOG};\nlocation / {{");
        text += "proxy_http_version 1.1;\nproxy_set_header Connection \"\";\nproxy_set_header Host $http_host;\n\
                 proxy_set_header X-Forwarded-For $client_address;\n";
        if self.routing.cookie.is_some() {
            text += "proxy_set_header X-Sticky-Route $route;\nadd_header Set-Cookie $new_cookie always;\n";
        }
        text += "proxy_pass http://upstreams;\n}\n}\n}\n";
        text
    }

    /// Value of the cookie, old or new: a header without a value is not sent.
    fn maps(&self) -> String {
        let Some(cookie) = &self.routing.cookie else { return String::new() };
        format!(
            "map $http_x_sticky_route $new_route {{ default $http_x_sticky_route; \"\" $request_id; }}\n\
             map $cookie_{cookie} $route {{ default $cookie_{cookie}; \"\" $new_route; }}\n\
             map \"$cookie_{cookie}$http_x_sticky_route\" $new_cookie {{ default \"\"; \
             \"\" \"{cookie}=$request_id; {COOKIE_ATTRIBUTES}\"; }}\n"
        )
    }

    fn upstream(&self) -> String {
        let mut text = "upstream upstreams {\n".to_owned();
        match &self.routing.balance {
            Balance::RoundRobin => {}
            Balance::LeastConnections => text += "least_conn;\n",
            Balance::Hash(keys) => {
                let variable = |key: &HashKey| match key {
                    HashKey::ClientAddress => "$client_address",
                    HashKey::Cookie => "$route",
                };
                let key: String = keys.iter().map(variable).collect();
                let _ = writeln!(text, "hash {key} consistent;");
            }
        }
        for address in &self.routing.upstreams {
            let _ = writeln!(text, "server {address};");
        }
        let _ = writeln!(text, "keepalive {};\n}}", self.routing.keepalive);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::proxy::tests::errors_are_reported;
    use crate::experiment::tests::components::{component, errors};

    fn nginx(balance: Balance, cookie: Option<&str>) -> String {
        let upstreams = vec!["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()];
        let routing = Routing { upstreams, balance, cookie: cookie.map(str::to_owned), keepalive: 7 };
        Nginx { routing }.configuration(8080)
    }

    #[test]
    fn the_upstreams_are_chosen_as_asked() {
        let servers = "server 127.0.0.1:1;\nserver 127.0.0.1:2;\nkeepalive 7;\n}\n";
        for (balance, expected) in [
            (Balance::RoundRobin, ""),
            (Balance::LeastConnections, "least_conn;\n"),
            (Balance::Hash(vec![HashKey::ClientAddress]), "hash $client_address consistent;\n"),
            (Balance::Hash(vec![HashKey::ClientAddress, HashKey::Cookie]), "hash $client_address$route consistent;\n"),
        ] {
            let text = nginx(balance, Some("route"));
            assert!(text.contains(&format!("upstream upstreams {{\n{expected}{servers}")), "{text}");
            assert!(text.contains("listen 127.0.0.1:8080 "), "{text}");
        }
    }

    #[test]
    fn only_with_a_cookie_is_one_given() {
        assert!(nginx(Balance::RoundRobin, Some("c")).contains("\"\" \"c=$request_id; Path=/;"));
        assert!(!nginx(Balance::RoundRobin, None).contains("Set-Cookie"));
    }

    #[test]
    fn its_keys_are_those_of_every_proxy() {
        let bound = component("nginx: { upstreams: { shop: \"http://127.0.0.1:300\" }, to: shop }");
        let upstreams = vec!["127.0.0.1:300".to_owned()];
        let routing = Routing { upstreams, balance: Balance::RoundRobin, cookie: None, keepalive: 32 };
        assert_eq!(bound.settings_as::<Nginx>().routing, routing);
    }

    #[test]
    fn errors_are_reported_as_of_every_proxy() {
        errors_are_reported("nginx");
        let said = errors("nginx: { upstreams: { all: \"http://127.0.0.1:1\" }, to: all, sticky: at }");
        assert!(said.contains("unknown key `sticky`"), "{said}");
    }
}
