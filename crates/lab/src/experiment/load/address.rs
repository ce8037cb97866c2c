//! The address of a system that runs already: `http://host:port` or `https://host:port`.

use crate::experiment::error::{Problem, shortened};

/// Regular expression of the texts that [`is_server_name`] accepts.
pub(crate) const SERVER_NAME_PATTERN: &str = "^[A-Za-z0-9_.:-]+$";

/// Place of a system, from a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    pub(crate) scheme: Scheme,
    /// `host:port` or `host`.
    pub(crate) authority: &'a str,
}

/// Whether the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl<'a> Address<'a> {
    /// The host without its port and without the brackets of an IPv6 address.
    pub(crate) fn host(self) -> &'a str {
        let host = split_port(self.authority).0;
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// `host:port`, with the scheme's port when the URL names none.
    pub(crate) fn with_port(self) -> String {
        match (split_port(self.authority), self.scheme) {
            ((_, Some(_)), _) => self.authority.to_owned(),
            ((host, None), Scheme::Http) => format!("{host}:80"),
            ((host, None), Scheme::Https) => format!("{host}:443"),
        }
    }
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// Takes a URL apart that has no more than a scheme, a host and perhaps a port.
pub(crate) fn parse(url: &str) -> Result<Address<'_>, Problem> {
    let expected = || Problem::new(format!("expected `http://host:port`, found \"{}\"", shortened(url)));
    let (scheme, authority) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(authority), _) => (Scheme::Http, authority),
        (None, Some(authority)) => (Scheme::Https, authority),
        (None, None) => return Err(expected()),
    };
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    if authority.contains(['/', '?', '#']) {
        return Err(expected().hint("put the path into `request`"));
    }
    let (host, port) = split_port(authority);
    let is_bare_ipv6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    let is_host = !host.is_empty() && !is_bare_ipv6 && host.bytes().all(|b| b.is_ascii_graphic() && b != b'@');
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if is_host && is_port { Ok(Address { scheme, authority }) } else { Err(expected()) }
}

/// Whether a text can be the name that a certificate is for.
pub(crate) fn is_server_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_host_and_perhaps_a_port() {
        let cases = [
            ("http://localhost:8080", Some(("localhost:8080", "localhost", "localhost:8080"))),
            ("http://10.0.0.1:80/", Some(("10.0.0.1:80", "10.0.0.1", "10.0.0.1:80"))),
            ("http://[::1]:80", Some(("[::1]:80", "::1", "[::1]:80"))),
            ("https://[::1]", Some(("[::1]", "::1", "[::1]:443"))),
            ("http://orders.example", Some(("orders.example", "orders.example", "orders.example:80"))),
            ("https://orders.example", Some(("orders.example", "orders.example", "orders.example:443"))),
            ("https://orders.example:8443/", Some(("orders.example:8443", "orders.example", "orders.example:8443"))),
            ("ftp://orders.example", None),
            ("http://", None),
            ("http://:80", None),
            ("http://a:0", None),
            ("http://a:99999", None),
            ("http://a b:80", None),
            ("http://::1:80", None),
            ("http://user@a:80", None),
            ("http://a/path", None),
        ];
        for (url, expected) in cases {
            let found = parse(url).ok();
            let found = found.as_ref().map(|found| (found.authority, found.host(), found.with_port()));
            assert_eq!(found, expected.map(|(all, host, port)| (all, host, port.to_owned())), "{url}");
        }
    }
}
