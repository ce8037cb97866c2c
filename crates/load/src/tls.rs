//! Verification of servers' certificates, and the causes of failed handshakes.
//!
//! TLS 1.2 and 1.3 by rustls. Sessions are never resumed: each virtual user stands for a client of its own, and a client
//! that was never there before has no ticket. The clock that certificates are held against is the machine's.
//!
//! Not here: client certificates, and connecting.

use std::io;
use std::sync::Arc;

use narrows_model::load::{LoadPlan, Protocol, Tls, Trust};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, InvalidMessage, RootCertStore, SignatureScheme};

use crate::Error;
use crate::recorder::Cause;

/// The most characters of an error of the library that are repeated.
const SAID_CHARS_MAX: usize = 200;

/// How connections of a plan are encrypted. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Encryption {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
    /// Whether the server has to choose HTTP/2.
    pub(crate) protocol: Protocol,
}

impl Encryption {
    /// That of a plan; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Plan`] when the server's name is none or no authority can be read.
    pub(crate) fn from_plan(plan: &LoadPlan) -> Result<Option<Self>, Error> {
        plan.tls.as_ref().map(|tls| Self::new(tls, plan.protocol)).transpose()
    }

    fn new(tls: &Tls, protocol: Protocol) -> Result<Self, Error> {
        let server_name = ServerName::try_from(tls.server_name.clone()).map_err(|_| {
            Error::plan("tls: server name", format!("{:?}, expected a DNS name or an address", tls.server_name))
        })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::plan("tls", error.to_string()))?;
        let mut config = match &tls.trust {
            Trust::System => builder.with_root_certificates(system()?).with_no_client_auth(),
            Trust::Authorities(pem) => builder.with_root_certificates(authorities(pem)?).with_no_client_auth(),
            Trust::Anything => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(Anything(provider))).with_no_client_auth()
            }
        };
        config.resumption = Resumption::disabled();
        config.alpn_protocols = match protocol {
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 => vec![b"h2".to_vec()],
        };
        Ok(Self { config: Arc::new(config), server_name, protocol })
    }
}

fn system() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    // A system's store may hold what no one can read any more; what counts is that there is something.
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(Error::plan("tls: trust", format!("the system has no certificate authorities{why}")));
    }
    Ok(store)
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, Error> {
    let refuse = |problem: String| Error::plan("tls: trust", problem);
    let mut store = RootCertStore::empty();
    for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let number = index + 1;
        let certificate = certificate.map_err(|error| refuse(format!("certificate {number} is not PEM: {error}")))?;
        store.add(certificate).map_err(|error| refuse(format!("certificate {number} cannot be used: {error}")))?;
    }
    if store.is_empty() {
        return Err(refuse("it has no certificate, expected PEM with at least one".into()));
    }
    Ok(store)
}

/// Verifies that the server has the key of its certificate, and nothing of the certificate.
#[derive(Debug)]
struct Anything(Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Cause of a failed handshake.
pub(crate) fn handshake_cause(error: &io::Error) -> Cause {
    match rustls_error(error) {
        Some(error) => cause(error),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            Cause::Text("TLS: the server closed the connection during the handshake")
        }
        None => error.raw_os_error().map_or(Cause::Text("TLS: the connection broke during the handshake"), Cause::Os),
    }
}

/// The TLS error behind an error of a connection, if there is one.
pub(crate) fn rustls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// An error of the encryption in words that are the same for every request that meets it.
pub(crate) fn cause(error: &rustls::Error) -> Cause {
    match error {
        rustls::Error::InvalidCertificate(problem) => certificate_cause(problem),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            Cause::Text("TLS: the server did not respond with TLS")
        }
        rustls::Error::AlertReceived(alert) => said(&format!("the server said {alert:?}")),
        other => said(&other.to_string()),
    }
}

fn certificate_cause(problem: &CertificateError) -> Cause {
    use CertificateError as E;
    match problem {
        E::NotValidForNameContext { expected, .. } => {
            said(&format!("certificate not valid for name \"{}\"", expected.to_str()))
        }
        E::NotValidForName => Cause::Text("TLS: certificate not valid for this name"),
        E::Expired | E::ExpiredContext { .. } => Cause::Text("TLS: certificate has expired"),
        E::NotValidYet | E::NotValidYetContext { .. } => Cause::Text("TLS: certificate is not valid yet"),
        E::UnknownIssuer => Cause::Text("TLS: certificate of an unknown authority"),
        E::Revoked => Cause::Text("TLS: certificate is revoked"),
        E::BadSignature => Cause::Text("TLS: certificate has an invalid signature"),
        E::BadEncoding => Cause::Text("TLS: certificate cannot be read"),
        other => said(&format!("certificate: {other}")),
    }
}

fn said(text: &str) -> Cause {
    let text: String = text.chars().take(SAID_CHARS_MAX).collect();
    Cause::Said(format!("TLS: {text}").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::constant_plan;

    fn refused(server_name: &str, trust: Trust) -> String {
        let mut plan = constant_plan();
        plan.tls = Some(Tls { server_name: server_name.into(), trust });
        Encryption::from_plan(&plan).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_name_their_place() {
        let cases = [
            ("a b", Trust::Anything, "tls: server name: \"a b\", expected a DNS name or an address"),
            (
                "a",
                Trust::Authorities(b"hello".to_vec()),
                "tls: trust: it has no certificate, expected PEM with at least one",
            ),
        ];
        for (name, trust, expected) in cases {
            assert_eq!(refused(name, trust), format!("load plan: {expected}"));
        }
        let cut = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
        assert!(
            refused("a", Trust::Authorities(cut)).starts_with("load plan: tls: trust: certificate 1 cannot be used")
        );
        assert!(Encryption::from_plan(&constant_plan()).unwrap().is_none());
    }

    #[test]
    fn the_protocol_is_what_is_asked_for() {
        for (protocol, expected) in [(Protocol::Http1, &b"http/1.1"[..]), (Protocol::Http2, b"h2")] {
            let mut plan = constant_plan();
            plan.protocol = protocol;
            plan.tls = Some(Tls { server_name: "127.0.0.1".into(), trust: Trust::Anything });
            assert_eq!(Encryption::from_plan(&plan).unwrap().unwrap().config.alpn_protocols, [expected]);
        }
    }

    #[test]
    fn long_words_of_the_library_are_cut() {
        let cause = cause(&rustls::Error::General("x".repeat(10_000)));
        assert_eq!(cause.to_string().chars().count(), "TLS: ".len() + SAID_CHARS_MAX);
    }
}
