//! The upstream of a hop, and how a connection to it is made.

use std::io;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsConnector, TlsStream};

use crate::fault::{Failure, Fault};
use crate::host_port::HostPort;
use crate::wire::Wire;

/// The place of an upstream, and what to expect of it.
pub(crate) struct Upstream {
    pub(crate) address: HostPort,
    pub(crate) tls: Option<(TlsConnector, ServerName<'static>)>,
    pub(crate) connect_timeout: Duration,
}

impl Upstream {
    /// A new connection, its TLS handshake included.
    pub(crate) async fn connect(&self) -> Result<Wire, Failure> {
        let late =
            |what| Failure::new(Fault::ConnectTimeout, format!("{what} took longer than {:?}", self.connect_timeout));
        let stream = timeout(self.connect_timeout, TcpStream::connect((&*self.address.host, self.address.port)))
            .await
            .map_err(|_| late("connecting"))?
            .map_err(unreachable)?;
        // A peer that is gone already cannot take the option; writing will say so.
        let _ = stream.set_nodelay(true);
        let Some((connector, name)) = &self.tls else { return Ok(Wire::Plain(stream)) };
        let stream = timeout(self.connect_timeout, connector.connect(name.clone(), stream))
            .await
            .map_err(|_| late("the TLS handshake"))?
            .map_err(|error| Failure::caused(Fault::UpstreamTls, &error))?;
        Ok(Wire::Tls(Box::new(TlsStream::Client(stream))))
    }
}

fn unreachable(error: io::Error) -> Failure {
    let fault = match error.kind() {
        io::ErrorKind::TimedOut => Fault::ConnectTimeout,
        _ => Fault::UpstreamUnreachable,
    };
    Failure::caused(fault, &error)
}
