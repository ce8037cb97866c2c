//! One hop as all its connections share it.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio_rustls::TlsAcceptor;

use crate::Error;
use crate::access_log::AccessLog;
use crate::config::{Direction, HopConfig, Limits, Protocol};
use crate::metrics::Counts;
use crate::pool::Pool;
use crate::telemetry::HopTelemetry;
use crate::tls::Mutual;
use crate::upstream::Upstream;

/// A hop.
pub(crate) struct Hop {
    pub(crate) name: String,
    pub(crate) direction: Direction,
    pub(crate) protocol: Protocol,
    /// Where it listens, with the port it was given.
    pub(crate) listen: SocketAddr,
    pub(crate) accepts_tls: bool,
    pub(crate) acceptor: Option<TlsAcceptor>,
    pub(crate) pool: Pool,
    pub(crate) limits: Limits,
    pub(crate) counts: Arc<Counts>,
    pub(crate) log: Option<Arc<AccessLog>>,
    pub(crate) telemetry: Option<HopTelemetry>,
}

impl Hop {
    /// Puts a hop together that listens on `listen`.
    pub(crate) fn new(
        config: &HopConfig,
        listen: SocketAddr,
        limits: Limits,
        mutual: Option<&Mutual>,
        log: Option<Arc<AccessLog>>,
    ) -> Result<Self, Error> {
        let tls = match (&config.upstream_name, mutual) {
            (Some(name), Some(mutual)) if config.upstream_tls => {
                Some((mutual.connector.clone(), server_name(config, name)?))
            }
            _ => None,
        };
        let upstream = Upstream { address: config.upstream.clone(), tls, connect_timeout: limits.connect_timeout() };
        Ok(Self {
            name: config.name.clone(),
            direction: config.direction,
            protocol: config.protocol,
            listen,
            accepts_tls: config.accept_tls,
            acceptor: mutual.filter(|_| config.accept_tls).map(|mutual| mutual.acceptor.clone()),
            pool: Pool::new(upstream, &limits),
            limits,
            counts: Arc::default(),
            log,
            telemetry: None,
        })
    }
}

fn server_name(config: &HopConfig, name: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(name.to_owned()).map_err(|_| Error::Config {
        what: format!("hop {:?}", config.name),
        reason: format!("expected `upstream_name` to be a DNS name or an address, found {name:?}"),
    })
}
