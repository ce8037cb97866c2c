//! `nginx:`: a proxy of the experiment's own, with a configuration that is generated for it.
//!
//! Its configuration and its temporary files lie in the replica's folder; it listens on 127.0.0.1 with one worker. The
//! configuration is tested by NGINX itself before the start, so that what it refuses is one clear error.
//!
//! Sticky sessions are made without NGINX's commercial `sticky`: a client without the cookie is given the request's own
//! identifier, which is also what the request is sent by, so the first request goes where the later ones do. Proxies
//! behind this one are told it in a header, and give no cookie of their own.

use std::fmt::Write as _;
use std::time::Duration;

use super::workshop::Workshop;
use super::{Component, Launch, Place};
use crate::Error;
use crate::experiment::{Balance, HashKey, Nginx, Ready};
use crate::programs::{NGINX, Program};

static PROGRAMS: &[&Program] = &[&NGINX];

/// The account that Debian's package gives its workers.
const ACCOUNT: &str = "www-data";
const CONFIGURATION: &str = "nginx.conf";
const TEST_PATIENCE: Duration = Duration::from_secs(20);
/// Connections of clients and to upstreams, together.
const CONNECTIONS_MAX: u32 = 16_384;
/// How long a client keeps its cookie, seconds.
const COOKIE_LIFETIME_S: u32 = 3_600;

impl Component for Nginx {
    fn programs(&self) -> &'static [&'static Program] {
        PROGRAMS
    }

    fn prepare(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<Launch, Error> {
        let found = place.find(&NGINX)?;
        let account = place.account(ACCOUNT)?;
        place.make_folder(account)?;
        let path = place.folder.join(CONFIGURATION);
        place.write(&path, &self.configuration(place.service.port), account)?;
        let text = |path: &std::path::Path| path.display().to_string();
        let command: Vec<String> = [
            text(&found.path),
            "-e".into(),
            "stderr".into(),
            "-p".into(),
            text(&place.folder),
            "-c".into(),
            text(&path),
        ]
        .into();
        let test = command.iter().cloned().chain(["-t".to_owned()]).collect();
        place.run(workshop, test, account, TEST_PATIENCE, "its configuration is refused")?;
        Ok(Launch { command, cwd: place.folder.clone(), env: Vec::new(), account, ready: Ready::Tcp })
    }
}

impl Nginx {
    /// The whole of `nginx.conf`, for a proxy that listens on `port`. Relative paths start from the prefix.
    fn configuration(&self, port: u16) -> String {
        let mut text = format!(
            "daemon off;\nworker_processes 1;\nworker_rlimit_nofile {CONNECTIONS_MAX};\npid nginx.pid;\n\
             events {{ worker_connections {CONNECTIONS_MAX}; }}\nhttp {{\naccess_log off;\n"
        );
        for folder in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            let _ = writeln!(text, "{folder}_temp_path {folder};");
        }
        text += "keepalive_requests 1000000;\n\
                 map $http_x_forwarded_for $client_address { default $http_x_forwarded_for; \"\" $remote_addr; }\n";
        text += &self.maps();
        text += &self.upstream();
        let _ = writeln!(text, "server {{\nlisten 127.0.0.1:{port} backlog=4096;\nlocation / {{");
        text += "proxy_http_version 1.1;\nproxy_set_header Connection \"\";\nproxy_set_header Host $http_host;\n\
                 proxy_set_header X-Forwarded-For $client_address;\n";
        if self.cookie.is_some() {
            text += "proxy_set_header X-Sticky-Route $route;\nadd_header Set-Cookie $new_cookie always;\n";
        }
        text += "proxy_pass http://upstreams;\n}\n}\n}\n";
        text
    }

    /// What the cookie is, or what it becomes: a header without a value is not sent.
    fn maps(&self) -> String {
        let Some(cookie) = &self.cookie else { return String::new() };
        format!(
            "map $http_x_sticky_route $new_route {{ default $http_x_sticky_route; \"\" $request_id; }}\n\
             map $cookie_{cookie} $route {{ default $cookie_{cookie}; \"\" $new_route; }}\n\
             map \"$cookie_{cookie}$http_x_sticky_route\" $new_cookie {{ default \"\"; \
             \"\" \"{cookie}=$request_id; Path=/; HttpOnly; SameSite=Lax; Max-Age={COOKIE_LIFETIME_S}\"; }}\n"
        )
    }

    fn upstream(&self) -> String {
        let mut text = "upstream upstreams {\n".to_owned();
        match &self.balance {
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
        for address in &self.upstreams {
            let _ = writeln!(text, "server {address};");
        }
        let _ = writeln!(text, "keepalive {};\n}}", self.keepalive);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nginx(balance: Balance, cookie: Option<&str>) -> String {
        let upstreams = vec!["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()];
        Nginx { upstreams, balance, cookie: cookie.map(str::to_owned), keepalive: 7 }.configuration(8080)
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
}
