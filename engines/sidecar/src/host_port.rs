//! `HOST:PORT` of an upstream: an address, or a name that is looked up anew for each connection.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use serde::Deserialize;

/// The longest name of a host (RFC 1035).
const HOST_MAX: usize = 253;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HostPort {
    /// A name or an address, an IPv6 address without brackets.
    pub host: String,
    /// The port, at least 1.
    pub port: u16,
}

impl TryFrom<String> for HostPort {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        read(&text).ok_or_else(|| format!("expected HOST:PORT such as 127.0.0.1:8080, found {text:?}"))
    }
}

fn read(text: &str) -> Option<HostPort> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let is_plain = |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().ok().map(|_| address)?,
        None => Some(host).filter(|host| (1..=HOST_MAX).contains(&host.len()) && is_plain(host))?,
    };
    Some(HostPort { host: host.to_owned(), port })
}

impl From<SocketAddr> for HostPort {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_string(), port: address.port() }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse() {
            Ok(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            _ => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_read_and_written() {
        for text in ["127.0.0.1:1", "[::1]:65535", "customer:8080", "a-b.c_d.svc:9"] {
            assert_eq!(HostPort::try_from(text.to_owned()).map(|place| place.to_string()).as_deref(), Ok(text));
        }
        let long = format!("{}:1", "a".repeat(HOST_MAX + 1));
        for text in ["", ":1", "a", "a:", "a:0", "a:65536", "a b:1", "http://a:1", "::1:1", "[a]:1", "[::1]", &long] {
            assert!(HostPort::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
