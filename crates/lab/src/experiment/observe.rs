//! `observe`: database servers that Narrows asks about themselves under load, without having started them.
//!
//! A server is known by a name and a URL. The URL's scheme says how it is asked; a password in it is a secret, and may be
//! left out for the environment variable that the server's own client reads.

use std::collections::BTreeMap;
use std::fmt;

use percent_encoding::percent_decode_str;
use serde_json::json;

use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report, shortened};
use crate::experiment::grammar::check::{Pass, check};
use crate::experiment::grammar::complete::complete;
use crate::experiment::grammar::key::{Value, optional, trial};
use crate::experiment::grammar::kind::{self, AS_TEXT, Refusal, Simple, no_hint};
use crate::experiment::grammar::shape::{Field, NamedMap, Shape};
use crate::experiment::grammar::values::MANY;
use crate::experiment::placeholders::names::Values;

static SERVER_URL: Simple<ServerUrl> = Simple {
    expected: "the URL of a server, such as `postgres://user:password@host:5432/database`",
    name: "URL of a server",
    written: AS_TEXT,
    read: server_url,
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^(postgres|postgresql|mysql|mariadb|redis)://" }),
};

const URL: Value<ServerUrl> = trial(&SERVER_URL);

const SERVERS: Shape =
    Shape::Named(NamedMap { what: "server", name: &kind::NAME, value: &URL.shape(), least: 0, most: MANY });

pub(crate) const OBSERVE: Field = optional(
    "observe",
    SERVERS,
    "Database servers that Narrows does not start and asks about themselves under load, by name: the URL of a PostgreSQL \
     (`postgres:`), MariaDB or MySQL (`mysql:`) or Redis server (`redis:`).",
);

/// A server that can be asked about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    Postgres,
    Mysql,
    Redis,
}

impl ServerKind {
    const ALL: [Self; 3] = [Self::Postgres, Self::Mysql, Self::Redis];

    /// The schemes of its URLs, the usual one first.
    fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &["postgres", "postgresql"],
            Self::Mysql => &["mysql", "mariadb"],
            Self::Redis => &["redis"],
        }
    }

    /// The usual scheme of its URLs.
    pub(crate) fn scheme(self) -> &'static str {
        self.schemes()[0]
    }

    fn usual_port(self) -> u16 {
        match self {
            Self::Postgres => 5432,
            Self::Mysql => 3306,
            Self::Redis => 6379,
        }
    }

    /// The environment variable in which the server's own client looks for a password.
    fn password_variable(self) -> &'static str {
        match self {
            Self::Postgres => "PGPASSWORD",
            Self::Mysql => "MYSQL_PWD",
            Self::Redis => "REDISCLI_AUTH",
        }
    }
}

/// Address of a server, and how to log in there. `Display` and `Debug` show no user and no password.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    pub(crate) kind: ServerKind,
    /// Name or address, without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: Option<String>,
}

impl ServerUrl {
    /// A server on this machine that needs no password.
    pub(crate) fn local(kind: ServerKind, port: u16, user: &str, database: &str) -> Self {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let host = "127.0.0.1".to_owned();
        Self { kind, host, port, user: text(user), password: None, database: text(database) }
    }

    /// Reads `scheme://user:password@host:port/database`; everything but scheme and host may be left out. Characters in
    /// user, password and database may be percent-encoded.
    ///
    /// # Errors
    /// In words that do not show the password.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or("a scheme is required, such as `postgres://`")?;
        let kind = ServerKind::ALL.into_iter().find(|kind| kind.schemes().contains(&scheme));
        let kind = kind.ok_or_else(|| {
            let known = ServerKind::ALL.map(|kind| format!("`{}`", kind.schemes()[0]));
            format!("unknown scheme `{}`, expected one of {}", shortened(scheme), known.join(", "))
        })?;
        if rest.contains(['?', '#']) {
            return Err("parameters after `?` are not supported".to_owned());
        }
        let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(login, rest)| (Some(login), rest));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse().ok().filter(|port| *port > 0);
                (host, port.ok_or("invalid port, expected a number from 1 to 65535")?)
            }
            _ => (authority, kind.usual_port()),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a host is required".to_owned());
        }
        let (user, password) = login.map_or(("", None), |login| match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        });
        Ok(Self {
            kind,
            host: host.to_owned(),
            port,
            user: decoded(user),
            password: password.and_then(decoded),
            database: decoded(database),
        })
    }

    /// The password of the URL, else that of the environment.
    pub(crate) fn password(&self) -> Option<String> {
        let of_environment = || std::env::var(self.kind.password_variable()).ok().filter(|text| !text.is_empty());
        self.password.clone().or_else(of_environment)
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        let scheme = self.kind.scheme();
        if host.contains(':') { write!(f, "{scheme}://[{host}]:{port}") } else { write!(f, "{scheme}://{host}:{port}") }
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({self})")
    }
}

/// `None` if nothing is left.
fn decoded(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8_lossy().into_owned();
    (!text.is_empty()).then_some(text)
}

fn server_url(text: &str) -> Result<ServerUrl, Refusal> {
    ServerUrl::parse(text).map_err(|reason| {
        let problem = Problem::new(format!("invalid URL of a server: {reason}"));
        Some(problem.hint("write it as `postgres://user:password@host:5432/database`"))
    })
}

/// The servers to ask by name.
pub(crate) fn build(root: At<'_>, values: &Values<'_>, report: &mut Report) -> BTreeMap<String, ServerUrl> {
    let Some(at) = root.get(&OBSERVE) else { return BTreeMap::new() };
    let node = complete(at.node, &SERVERS, values);
    let at = at.with(&node);
    check(at, &SERVERS, Pass::Bound, report);
    at.entries().filter_map(|(name, url)| Some((name.to_owned(), url.value(URL)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_left_out_have_defaults() {
        let url = ServerUrl::parse("postgres://db").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.user, url.database), ("db", 5432, None, None));
        let url = ServerUrl::parse("mariadb://app:a%40b:c@[::1]:3307/shop").unwrap();
        assert_eq!((url.kind, url.host.as_str(), url.port), (ServerKind::Mysql, "::1", 3307));
        let login = [url.user.as_deref(), url.password.as_deref(), url.database.as_deref()];
        assert_eq!(login, [Some("app"), Some("a@b:c"), Some("shop")]);
        assert_eq!(ServerUrl::parse("redis://:secret@cache:6380").unwrap().password.as_deref(), Some("secret"));
    }

    #[test]
    fn neither_texts_nor_errors_show_a_login() {
        let url = ServerUrl::parse("postgres://app:hunter2@db:5432/shop").unwrap();
        assert_eq!(
            (url.to_string().as_str(), format!("{url:?}").as_str()),
            ("postgres://db:5432", "ServerUrl(postgres://db:5432)")
        );
        for text in ["db:5432", "http://db", "postgres://", "redis://h:0", "redis://h:x", "mysql://u:hunter2@h/d?ssl=1"]
        {
            let error = ServerUrl::parse(text).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
