//! One node of the database, by its URL.

use std::str::FromStr;

use mysql_async::Opts;

use crate::Error;

/// Address, login and database of a node: `mysql://USER[:PASSWORD]@HOST:PORT/DATABASE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    options: Opts,
    namespace: String,
}

impl Node {
    pub(crate) fn options(&self) -> &Opts {
        &self.options
    }

    pub(crate) fn host(&self) -> &str {
        self.options.ip_or_hostname()
    }

    pub(crate) fn port(&self) -> u16 {
        self.options.tcp_port()
    }

    /// The database's name.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.host(), self.port())
    }
}

impl FromStr for Node {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = || Error::Setting {
            name: "database",
            value: without_password(text),
            expected: "mysql://USER[:PASSWORD]@HOST:PORT/DATABASE",
        };
        if text.contains('?') {
            return Err(refused());
        }
        let options = Opts::from_url(text).map_err(|_| refused())?;
        let namespace = options.db_name().filter(|name| !name.is_empty()).map(str::to_owned).ok_or_else(refused)?;
        Ok(Self { options, namespace })
    }
}

/// The URL, whose user and password are left out.
fn without_password(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => format!("{}…{}", &text[..scheme + 3], &text[at..]),
        (None, Some(at)) => format!("…{}", &text[at..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_host_port_and_database() {
        let node: Node = "mysql://root:x%40y@127.0.0.1:3311/micron".parse().unwrap();
        assert_eq!((node.address().as_str(), node.namespace()), ("127.0.0.1:3311", "micron"));
        assert_eq!(node.options().pass(), Some("x@y"));
    }

    #[test]
    fn what_is_no_such_url_is_refused_without_its_password() {
        for (bad, shown) in [
            ("", ""),
            ("127.0.0.1:3306", "127.0.0.1:3306"),
            ("postgres://a@h/b", "postgres://…@h/b"),
            ("mysql://root@127.0.0.1:1", "mysql://…@127.0.0.1:1"),
            ("mysql://root@127.0.0.1:1/", "mysql://…@127.0.0.1:1/"),
            ("mysql://root:secret@127.0.0.1:1/", "mysql://…@127.0.0.1:1/"),
            ("mysql://root:secret@h:99999/a", "mysql://…@h:99999/a"),
            ("mysql://root@h/a?pool_min=3", "mysql://…@h/a?pool_min=3"),
            ("root:secret@h", "…@h"),
        ] {
            let error = bad.parse::<Node>().unwrap_err().to_string();
            let expected = "mysql://USER[:PASSWORD]@HOST:PORT/DATABASE";
            assert_eq!(error, format!("database is {shown:?}, expected {expected}"));
        }
    }
}
