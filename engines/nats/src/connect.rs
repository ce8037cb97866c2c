//! The connection of an address.

use std::path::Path;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, ServerAddr};

use crate::address::{Identity, NatsAddress};

/// How long one server may take to accept a connection, so that another one can be tried in time.
pub const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest file of credentials that is read.
const CREDENTIALS_BYTES_MAX: u64 = 64 << 10;

impl NatsAddress {
    /// Connects to one of its servers, with these options besides.
    ///
    /// # Errors
    /// Why no server could be reached within 5 s, or let nobody in, or which file cannot be read.
    pub async fn connect(&self, options: ConnectOptions) -> Result<Client, String> {
        let options = self.with_protection(self.with_identity(options)?);
        let servers: Result<Vec<ServerAddr>, _> = self.servers.iter().map(|server| self.server(server)).collect();
        let servers = servers.map_err(|error| error.to_string())?;
        let connecting = options.connection_timeout(SERVER_TIMEOUT).connect(servers);
        let client = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        client
            .map_err(|_| format!("no connection within {} ms", CONNECT_TIMEOUT.as_millis()))?
            .map_err(|error| innermost(&error))
    }

    fn server(&self, server: &str) -> std::io::Result<ServerAddr> {
        let scheme = if self.requires_tls { "tls" } else { "nats" };
        format!("{scheme}://{server}").parse()
    }

    fn with_identity(&self, options: ConnectOptions) -> Result<ConnectOptions, String> {
        Ok(match &self.identity {
            Identity::Nobody => options,
            Identity::User { name, password } => options.user_and_password(name.clone(), password.clone()),
            Identity::Token(token) => options.token(token.clone()),
            Identity::Seed(file) => options.nkey(read(file)?.trim().to_owned()),
            Identity::Credentials(file) => options.credentials(&read(file)?).map_err(|_| {
                format!(
                    "{}: no credentials, expected a file with a JWT and the seed of its key, as `nsc` writes it",
                    file.display()
                )
            })?,
        })
    }

    fn with_protection(&self, mut options: ConnectOptions) -> ConnectOptions {
        if let Some(file) = &self.authorities {
            options = options.add_root_certificates(file.clone());
        }
        if let Some((certificate, key)) = &self.client_certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        options.require_tls(self.requires_tls)
    }
}

fn read(file: &Path) -> Result<String, String> {
    let text = narrows_files::read_text(file, CREDENTIALS_BYTES_MAX);
    text.map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// The innermost cause, which is the message of the server or the system.
pub fn innermost<E: std::error::Error>(error: &E) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = source.to_string();
        next = source.source();
    }
    text
}
