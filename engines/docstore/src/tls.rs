//! HTTPS at the port that serves HTTP: a connection that begins with a handshake is served over TLS.
//!
//! Certificate and key lie in a folder, so that clients trust a store once and not at each start. A folder without them gets
//! a certificate for localhost, signed by itself.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::Error;

/// Certificate that clients have to trust.
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
/// Whom the certificate is for.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// The first byte of a handshake (RFC 8446, 5.1); a request of HTTP begins with a letter.
const HANDSHAKE: u8 = 22;
/// The protocols that a client may choose from.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The store's side of TLS.
#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    certificate: PathBuf,
}

/// A connection with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Whether requests of a connection come over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// As addresses begin with it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl Tls {
    /// Reads certificate and key of `folder`, or makes them where both are missing.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
        if !certificate.exists() && !key.exists() {
            make(folder, &certificate, &key)?;
        }
        let mut config = server(&certificate, &key)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificate })
    }

    /// The file with the certificate.
    pub(crate) fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// The connection ready for requests; `None` after a failed handshake, or if the client has gone.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Option<(Scheme, Box<dyn Stream>)> {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1) if first == [HANDSHAKE] => {
                let stream = self.acceptor.accept(stream).await.ok()?;
                Some((Scheme::Https, Box::new(stream)))
            }
            Ok(1) => Some((Scheme::Http, Box::new(stream))),
            _ => None,
        }
    }
}

fn server(certificate: &Path, key: &Path) -> Result<ServerConfig, Error> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| unusable(certificate, &error))
}

fn unusable(file: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::Certificate { file: file.to_owned(), why: why.to_string() }
}

fn make(folder: &Path, certificate: &Path, key: &Path) -> Result<(), Error> {
    let cannot = |action| move |source| Error::Folder { path: folder.to_owned(), action, source };
    let (public, secret) = generate().map_err(|error| unusable(certificate, &error))?;
    fs::create_dir_all(folder).map_err(cannot("make"))?;
    let mut options = fs::File::options();
    let written = options.write(true).create_new(true).mode(0o600).open(key);
    written.and_then(|mut file| file.write_all(secret.as_bytes())).map_err(cannot("write into"))?;
    fs::write(certificate, public).map_err(cannot("write into"))
}

/// A certificate and its key, as PEM.
fn generate() -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, "localhost");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_keeps_its_certificate_and_hides_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("made");
        let read = |tls: Tls| fs::read_to_string(tls.certificate()).unwrap();
        let first = read(Tls::open(&folder).unwrap());
        assert_eq!(read(Tls::open(&folder).unwrap()), first);
        assert_eq!(fs::metadata(folder.join(KEY)).unwrap().permissions().mode() & 0o777, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(read(Tls::open(other.path()).unwrap()), first);
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = tempfile::tempdir().unwrap();
        Tls::open(folder.path()).unwrap();
        let other = tempfile::tempdir().unwrap();
        Tls::open(other.path()).unwrap();
        let file = |name: &str| folder.path().join(name);
        let refused = |name: &str| {
            let error = Tls::open(folder.path()).map(drop).unwrap_err();
            assert!(error.to_string().starts_with(&format!("cannot use {}: ", file(name).display())), "{error}");
            assert!(error.hint().is_some());
        };
        fs::copy(other.path().join(KEY), file(KEY)).unwrap();
        refused(CERTIFICATE);
        fs::write(file(KEY), "nothing").unwrap();
        refused(KEY);
        fs::remove_file(file(KEY)).unwrap();
        refused(KEY);
        fs::write(file(CERTIFICATE), "nothing").unwrap();
        fs::copy(other.path().join(KEY), file(KEY)).unwrap();
        refused(CERTIFICATE);
    }
}
