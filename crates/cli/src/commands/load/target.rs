//! The URL of `narrows load`, taken apart, and the address behind it.

use std::net::SocketAddr;

use narrows_lab::resolve::resolve;
use narrows_telemetry::secrets::{redact_text, redact_url};

use crate::exit::Failure;

/// Whether connections are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

/// A parsed URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) scheme: Scheme,
    /// `host` or `host:port`.
    pub(super) authority: String,
    /// Path and query.
    pub(super) path: String,
}

impl Target {
    pub(super) fn parse(url: &str) -> Result<Self, Failure> {
        let shown = shown(url);
        let wrong = || {
            Failure::new(format!("`{shown}` is not a URL")).hint("expected something like http://127.0.0.1:8080/path")
        };
        let (scheme, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (Scheme::Http, rest),
            (_, Some(rest)) => (Scheme::Https, rest),
            _ => return Err(wrong()),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let is_sendable = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let has_user = authority.contains('@');
        let has_wrong_port = port_of(authority)
            .is_some_and(|(host, port)| !host.is_empty() && !port.parse::<u16>().is_ok_and(|port| port > 0));
        if has_user {
            return Err(Failure::new(format!("`{shown}` has a user in it"))
                .hint("give it as a header: -H 'Authorization: Basic …'"));
        }
        if has_wrong_port {
            return Err(Failure::new(format!("the port of `{shown}` is not a number from 1 to 65535")));
        }
        if host_of(authority).is_empty() || !is_sendable(authority) || !is_sendable(path) {
            return Err(wrong());
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { scheme, authority: authority.to_owned(), path })
    }

    /// The host alone: a name, or an address without brackets.
    pub(super) fn host(&self) -> &str {
        let host = host_of(&self.authority);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The address to connect to.
    pub(super) fn address(&self) -> Result<SocketAddr, Failure> {
        let port = if self.scheme == Scheme::Https { 443 } else { 80 };
        let with_port = match port_of(&self.authority) {
            Some(_) => self.authority.clone(),
            None => format!("{}:{port}", self.authority),
        };
        resolve(&with_port).map_err(|reason| {
            Failure::new(format!("cannot find the address of `{}`: {reason}", self.host()))
                .hint("check the name, or give the address in its place and the name with --host")
        })
    }
}

/// A URL as it may be printed and written: without the secrets in it.
pub(super) fn shown(url: &str) -> String {
    let mut shown = url.to_owned();
    redact_url(&mut shown);
    redact_text(&mut shown);
    shown
}

/// Host and port; `None` if there is no port. Colons within brackets belong to an address.
fn port_of(authority: &str) -> Option<(&str, &str)> {
    authority.rsplit_once(':').filter(|(_, port)| !port.contains(']'))
}

fn host_of(authority: &str) -> &str {
    port_of(authority).map_or(authority, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parse = |url: &str| Target::parse(url).ok().map(|target| (target.authority, target.path));
        let pair = |authority: &str, path: &str| Some((authority.to_owned(), path.to_owned()));
        assert_eq!(parse("http://a:80/x?y=1#z"), pair("a:80", "/x?y=1"));
        assert_eq!(parse("http://a"), pair("a", "/"));
        assert_eq!(parse("https://a?q"), pair("a", "/?q"));
        for wrong in [
            "a",
            "http://",
            "http://u:p@a/",
            "http://a:99999/",
            "http://a:0",
            "http://a:b",
            "http://:80/",
            "https://",
            "http://a/b c",
            "ftp://a",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ports_follow_the_scheme() {
        let address = |url: &str| Target::parse(url).unwrap().address().unwrap().to_string();
        assert_eq!(address("http://127.0.0.1/"), "127.0.0.1:80");
        assert_eq!(address("https://127.0.0.1/"), "127.0.0.1:443");
        assert_eq!(address("https://[::1]"), "[::1]:443");
        assert_eq!(address("https://[::1]:8443"), "[::1]:8443");
        assert_eq!(Target::parse("https://[::1]:8443").unwrap().host(), "::1");
        assert_eq!(Target::parse("https://a.example:1").unwrap().host(), "a.example");
    }
}
