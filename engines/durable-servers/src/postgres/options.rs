//! Options: the database, the hub in it, and how it is used, from a text such as
//! `postgres://user:password@host:5432/database?hub=orders`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use narrows_durable::store::{Batching, Location, StoreError};
use tokio_postgres::config::Host;

use crate::calls::refused;
use crate::names::check_hub_name;

/// The name of the hub where the text gives none.
const HUB: &str = "main";
const CONNECTIONS_MAX: usize = 64;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const EXPECTED: &str = "expected postgres://user:password@host:port/database?hub=name, with special characters of the \
                        password percent-encoded";

/// How a hub in PostgreSQL is used.
#[derive(Clone, Debug)]
pub struct PostgresStoreOptions {
    /// [`Batching::Group`] commits many frames in one row and one transaction; [`Batching::EachStep`] each frame in a
    /// row and its own transaction, as engines do that keep every step in tables.
    pub batching: Batching,
    /// Connections at most, 1 to 64. Each is made when it is first needed; partitions share them.
    pub connections: usize,
    /// How long a statement may take.
    pub call_timeout: Duration,
    /// How long a call is tried again when the connection is lost.
    pub retry_timeout: Duration,
    /// The address of this machine that other nodes reach it at. Loopback unless set.
    pub bus: IpAddr,
}

impl Default for PostgresStoreOptions {
    fn default() -> Self {
        Self {
            batching: Batching::Group,
            connections: 4,
            call_timeout: Duration::from_secs(30),
            retry_timeout: Duration::from_secs(10),
            bus: IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }
}

/// Where a hub is.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) config: tokio_postgres::Config,
    pub(super) schema: String,
    /// The server, the database and the hub, for people.
    pub(super) server: String,
}

impl Address {
    /// Reads the text. Errors show nothing of it, since any part may belong to the password.
    pub(super) fn parse(url: &str, options: &mut PostgresStoreOptions) -> Result<Self, StoreError> {
        let failed = |what: &str| refused("open", text(), format!("{what}, {EXPECTED}"));
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(failed("it does not begin with postgres://"));
        }
        // A password may hold a question mark.
        let begin = url.find('@').unwrap_or(0);
        let query_at = url[begin..].find('?').map(|at| begin + at);
        let (base, query) = query_at.map_or((url, ""), |at| (&url[..at], &url[at + 1..]));
        let mut hub = HUB;
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("hub", name)) => hub = name,
                Some(("connections", number)) => options.connections = number.parse().unwrap_or(0),
                Some(("bus", address)) => {
                    options.bus = address.parse().map_err(|_| failed("`bus` is not an IP address"))?;
                }
                Some(("batching", "group")) => options.batching = Batching::Group,
                Some(("batching", "each-step")) => options.batching = Batching::EachStep,
                Some(("batching", _)) => return Err(failed("`batching` is neither `group` nor `each-step`")),
                _ => rest.push(pair),
            }
        }
        check_hub_name(hub).map_err(|why| refused("open", text(), why))?;
        if !(1..=CONNECTIONS_MAX).contains(&options.connections) {
            return Err(failed("`connections` is not a number from 1 to 64"));
        }
        if options.bus.is_unspecified() {
            return Err(failed("`bus` is not an address that other nodes can reach"));
        }
        let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: tokio_postgres::Config =
            plain.parse().map_err(|_| failed("it is not a valid connection text"))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.application_name("narrows-durable");
        config.tcp_user_timeout(options.call_timeout);
        let server = format!("PostgreSQL {}, hub {hub}", place(&config));
        Ok(Self { config, schema: format!("narrows_{hub}"), server })
    }
}

fn text() -> Location {
    Location::Remote { server: "PostgreSQL".to_owned(), what: "the connection text".to_owned() }
}

/// Host, port and database, without user and password.
fn place(config: &tokio_postgres::Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "of this machine".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("{host}:{port}/{database}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, String> {
        Address::parse(url, &mut PostgresStoreOptions::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_hub_is_named_in_the_text_and_the_password_is_not_shown() {
        let address = parse("postgres://me:secret@db.example:5433/app?hub=orders&sslmode=disable").expect("parsed");
        assert_eq!(address.schema, "narrows_orders");
        assert_eq!(address.server, "PostgreSQL db.example:5433/app, hub orders");
        assert_eq!(parse("postgres://me@db/app").expect("parsed").schema, "narrows_main");
        assert_eq!(address.config.get_password(), Some(&b"secret"[..]));
        let marked = parse("postgres://me:se?hub=cret%40@db/app?hub=orders").expect("parsed");
        assert_eq!(marked.config.get_password(), Some(&b"se?hub=cret@"[..]));
        assert_eq!(marked.schema, "narrows_orders");
    }

    #[test]
    fn bad_texts_are_refused_without_showing_them() {
        for bad in [
            "mysql://me:secret@db/app",
            "postgres://me:secret@db:port/app",
            "postgres://me:secret@db/app?hub=A",
            "postgres://me:secret@db/app?hub=",
            "postgres://me:secret@db/app?connections=0",
            "postgres://me:secret@db/app?batching=secret",
            "postgres://me:secret@db/app?bus=0.0.0.0",
            "postgres://me:secret@db/app?bus=here",
            "postgres://me:secret@db/app?secret=1",
        ] {
            let error = parse(bad).expect_err(bad);
            assert!(error.contains("expected") && !error.contains("secret"), "{error}");
        }
    }
}
