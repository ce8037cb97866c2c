//! URLs of the replicas of another service: `http://HOST:PORT`, several with commas between them.

use std::str::FromStr;

use http::Uri;

use crate::Error;

/// Most replicas of one service.
const REPLICAS_MAX: usize = 100;

/// One replica's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The addresses of a service's replicas, in their order, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrls(pub(crate) Vec<Authority>);

impl FromStr for BaseUrls {
    type Err = Error;

    /// Reads `http://HOST:PORT[,…]`; a path, a query or a user name is refused, as nothing would use it.
    fn from_str(text: &str) -> Result<Self, Error> {
        let parts: Option<Vec<Authority>> = text.split(',').map(authority).collect();
        let authorities = parts.filter(|parts| parts.len() <= REPLICAS_MAX).ok_or_else(|| Error::Setting {
            name: "URL",
            value: text.to_owned(),
            expected: "http://HOST:PORT, or up to 100 of them with commas between",
        })?;
        Ok(Self(authorities))
    }
}

fn authority(text: &str) -> Option<Authority> {
    let uri: Uri = text.trim().parse().ok()?;
    let is_bare = uri.scheme_str() == Some("http") && uri.path() == "/" && uri.query().is_none();
    let authority = uri.authority().filter(|authority| is_bare && !authority.as_str().contains('@'))?;
    // The brackets of an IPv6 address belong to the URL, not to the address.
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    Some(Authority { host: host.to_owned(), port: authority.port_u16().unwrap_or(80) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_http_addresses_are_taken_and_nothing_else() {
        let read = |text: &str| text.parse::<BaseUrls>();
        let one = |host: &str, port| Authority { host: host.to_owned(), port };
        assert_eq!(read("http://127.0.0.1:81").unwrap().0, [one("127.0.0.1", 81)]);
        assert_eq!(read("http://a:1/, http://[::1]:2").unwrap().0, [one("a", 1), one("::1", 2)]);
        assert_eq!(read("http://localhost").unwrap().0, [one("localhost", 80)]);
        for bad in
            ["", ",", "127.0.0.1:80", "https://a", "http://a/b", "http://a?b", "http://u@a", "http://", "http://a,"]
        {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("URL is {bad:?}, expected http://HOST:PORT")), "{error}");
        }
        assert!(read(&vec!["http://a:1"; 101].join(",")).is_err());
    }
}
