//! Encryption towards a server with an HTTPS address: TLS 1.2 and 1.3, with a certificate of an authority that the system
//! trusts. `SSL_CERT_FILE` and `SSL_CERT_DIR` name other authorities.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Encrypts a connection to this host.
///
/// # Errors
/// In words, when the host's certificate is not trusted, or it does not speak TLS.
pub(super) async fn encrypted(stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, String> {
    let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(name).map_err(|_| format!("`{host}` is no name of a server"))?;
    TlsConnector::from(Arc::new(config()?)).connect(name, stream).await.map_err(|error| error.to_string())
}

fn config() -> Result<ClientConfig, String> {
    let mut authorities = RootCertStore::empty();
    // A system's store may hold certificates that cannot be read any more; it must have one that can.
    authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if authorities.is_empty() {
        return Err("the system has no certificate authorities".to_owned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(authorities).with_no_client_auth())
}
