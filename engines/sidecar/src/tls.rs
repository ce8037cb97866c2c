//! Mutual TLS: both sides show a certificate of one authority, and callers check the name in it.
//!
//! The cryptography is ring's, named here rather than taken from the process, which may link several.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::Error;
use crate::config::TlsFiles;

/// Both ends of mutual TLS.
#[derive(Clone)]
pub(crate) struct Mutual {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) connector: TlsConnector,
}

impl Mutual {
    /// Reads the files and puts them together.
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(roots(&files.ca)?);
        let chain = certificates(&files.certificate)?;
        let key = key(&files.key)?;
        let server = server(&provider, &roots, &chain, key.clone_key()).map_err(Error::Tls)?;
        let client = client(&provider, &roots, chain, key).map_err(Error::Tls)?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(server)), connector: TlsConnector::from(Arc::new(client)) })
    }
}

/// The largest file with a key or certificates, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

type Trouble = Box<dyn std::error::Error + Send + Sync>;

fn server(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    chain: &[CertificateDer<'static>],
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, Trouble> {
    let callers = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider)).build()?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider)).with_safe_default_protocol_versions()?;
    Ok(builder.with_client_cert_verifier(callers).with_single_cert(chain.to_vec(), key)?)
}

fn client(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, Trouble> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider)).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(Arc::clone(roots)).with_client_auth_cert(chain, key)?)
}

fn roots(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| pem(path, format!("no certificate of an authority: {error}")))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| pem(path, format!("expected certificates in PEM: {error}")))?;
    if found.is_empty() { Err(pem(path, "expected certificates in PEM, found none".to_owned())) } else { Ok(found) }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(&read(path)?)
        .map_err(|error| pem(path, format!("expected a private key in PEM: {error}")))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    narrows_files::read(path, FILE_BYTES_MAX).map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn pem(path: &Path, reason: String) -> Error {
    Error::Pem { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Authority;

    #[test]
    fn files_that_are_no_certificates_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let good = Authority::new().issue(folder.path(), "a");
        assert!(Mutual::read(&good).is_ok());
        let junk = folder.path().join("junk.pem");
        std::fs::write(&junk, "nothing").unwrap();
        let cases = [
            (TlsFiles { ca: junk.clone(), ..good.clone() }, "expected certificates in PEM, found none"),
            (TlsFiles { certificate: junk.clone(), ..good.clone() }, "expected certificates in PEM, found none"),
            (TlsFiles { key: junk.clone(), ..good.clone() }, "expected a private key in PEM"),
            (TlsFiles { key: folder.path().join("absent"), ..good.clone() }, "cannot read"),
            (TlsFiles { certificate: good.ca.clone(), ..good.clone() }, "the certificates cannot be used"),
        ];
        for (files, expected) in cases {
            let said = Mutual::read(&files).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.contains(expected), "{said:?} does not say {expected:?}");
        }
    }
}
