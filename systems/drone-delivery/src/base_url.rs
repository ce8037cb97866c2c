//! URL of another service: scheme, host and port, no path.

use std::str::FromStr;

use axum::http::Uri;
use axum::http::uri::Authority;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::Error;

/// The characters of a path that URLs encode, besides those outside ASCII: the path percent-encode set of the URL standard.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'?').add(b'^').add(b'`').add(b'{').add(b'}');

/// The port of an address without one.
const PORT: u16 = 80;

/// The address of a service, `http://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(Authority);

impl BaseUrl {
    /// The URL of `path`, which begins with a slash and is encoded where needed. Errors when it is too long for a URL.
    pub(crate) fn at(&self, path: &str) -> Result<Uri, Error> {
        let encoded = utf8_percent_encode(path, PATH).to_string();
        let url = Uri::builder().scheme("http").authority(self.0.clone()).path_and_query(encoded).build();
        url.map_err(|_| Error::Setting {
            name: "path",
            value: path.to_owned(),
            expected: "a slash, and at most 65534 bytes",
        })
    }

    /// Host and port.
    #[cfg(test)]
    pub(crate) fn authority(&self) -> &Authority {
        &self.0
    }
}

/// The host and port that a URL leads to.
pub(crate) fn server(url: &Uri) -> (&str, u16) {
    (url.host().unwrap_or_default(), url.port_u16().unwrap_or(PORT))
}

impl FromStr for BaseUrl {
    type Err = Error;

    /// Reads `http://host:port`; a path, a query or a user name is refused, as nothing would use it.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = || Error::Setting { name: "URL", value: text.to_owned(), expected: "http://HOST:PORT" };
        bare_authority(text).map(Self).ok_or_else(refused)
    }
}

/// The addresses of a service's replicas, at least one, separated by commas in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrls(Vec<BaseUrl>);

impl BaseUrls {
    /// A service with these replicas.
    pub fn of(first: BaseUrl, others: impl IntoIterator<Item = BaseUrl>) -> Self {
        Self(std::iter::once(first).chain(others).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &BaseUrl> {
        self.0.iter()
    }
}

impl From<BaseUrl> for BaseUrls {
    fn from(only: BaseUrl) -> Self {
        Self::of(only, [])
    }
}

impl FromStr for BaseUrls {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

fn bare_authority(text: &str) -> Option<Authority> {
    // The parser drops a fragment without a word.
    let url: Uri = text.parse().ok().filter(|_| !text.contains('#'))?;
    let is_bare = url.scheme_str() == Some("http") && url.path() == "/" && url.query().is_none();
    let authority = url.authority().filter(|authority| is_bare && !authority.as_str().contains('@'))?;
    // A port that is no number is none to the parser.
    let has_port = authority.as_str().len() > authority.host().len();
    (!authority.host().is_empty() && has_port == authority.port_u16().is_some()).then(|| authority.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_http_address_is_taken_and_nothing_else() {
        for good in ["http://127.0.0.1:80", "http://localhost:8080/", "http://[::1]:1", "http://a"] {
            assert!(good.parse::<BaseUrl>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "127.0.0.1:80",
            "https://a",
            "http://a/b",
            "http://a?b",
            "http://a#b",
            "http://u@a",
            "http://",
            "http://:80",
            "http://a:65536",
            "http://a:",
            "http://a:x",
            "ftp://a",
        ] {
            let error = bad.parse::<BaseUrl>().unwrap_err().to_string();
            assert_eq!(error, format!("URL is {bad:?}, expected http://HOST:PORT"));
        }
    }

    #[test]
    fn replicas_are_separated_by_commas() {
        let urls: BaseUrls = "http://a:1,http://b:2".parse().unwrap();
        assert_eq!(urls, BaseUrls::of("http://a:1".parse().unwrap(), ["http://b:2".parse().unwrap()]));
        for wrong in ["", ",", "http://a,", "http://a,b"] {
            assert!(wrong.parse::<BaseUrls>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_in_paths_are_encoded() {
        let base: BaseUrl = "http://127.0.0.1:81".parse().unwrap();
        assert_eq!(base.at("/dbs/a b?/x").unwrap(), "http://127.0.0.1:81/dbs/a%20b%3F/x");
        assert_eq!(base.at("/dbs/ö/{\"#}").unwrap(), "http://127.0.0.1:81/dbs/%C3%B6/%7B%22%23%7D");
        assert!(base.at(&format!("/{}", "a".repeat(70_000))).is_err());
    }

    #[test]
    fn a_server_without_a_port_is_at_the_default_one() {
        for (text, expected) in [("http://a", ("a", 80)), ("http://[::1]:2", ("[::1]", 2))] {
            assert_eq!(server(&text.parse::<BaseUrl>().unwrap().at("/").unwrap()), expected);
        }
    }
}
