//! Where another service is: scheme, host and port, no path.

use std::str::FromStr;

use reqwest::Url;

use crate::Error;

/// The address of a service, `http://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

impl BaseUrl {
    /// The URL of `path`, which begins with a slash and is encoded where needed.
    pub(crate) fn at(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(path);
        url
    }
}

impl FromStr for BaseUrl {
    type Err = Error;

    /// Reads `http://host:port`; a path, a query or a user name is refused, as nothing would use it.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = || Error::Setting { name: "URL", value: text.to_owned(), expected: "http://HOST:PORT" };
        let url = Url::parse(text).map_err(|_| refused())?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        if url.scheme() == "http" && url.has_host() && is_bare && is_anonymous { Ok(Self(url)) } else { Err(refused()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_http_address_is_taken_and_nothing_else() {
        for good in ["http://127.0.0.1:80", "http://localhost:8080/", "http://[::1]:1"] {
            assert!(good.parse::<BaseUrl>().is_ok(), "{good}");
        }
        for bad in ["", "127.0.0.1:80", "https://a", "http://a/b", "http://a?b", "http://u@a", "http://", "ftp://a"] {
            let error = bad.parse::<BaseUrl>().unwrap_err().to_string();
            assert_eq!(error, format!("URL is {bad:?}, expected http://HOST:PORT"));
        }
    }

    #[test]
    fn names_in_paths_are_encoded() {
        let base: BaseUrl = "http://127.0.0.1:80".parse().unwrap();
        assert_eq!(base.at("/dbs/a b?/x").as_str(), "http://127.0.0.1/dbs/a%20b%3F/x");
    }
}
