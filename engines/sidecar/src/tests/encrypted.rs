//! Mutual TLS between two sidecars, and who is kept out.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::TlsConnector;

use super::*;
use crate::config::{Config, TlsFiles};
use crate::testing::Authority;

fn with(tls: &TlsFiles, hop: crate::HopConfig) -> Config {
    Config { tls: Some(tls.clone()), ..config(vec![hop]) }
}

/// A sidecar that requests certificates, of the service `b`, before `upstream`.
fn inner(authority: &Authority, folder: &Path, protocol: Protocol, upstream: SocketAddr) -> RunningSidecar {
    RunningSidecar::start(&with(
        &authority.issue(folder, "b"),
        crate::HopConfig { accept_tls: true, protocol, ..hop("inbound-tls", upstream) },
    ))
}

/// A sidecar of the service `a` before one that is expected to be `name`.
fn outer(authority: &Authority, folder: &Path, protocol: Protocol, upstream: SocketAddr, name: &str) -> RunningSidecar {
    let hop = crate::HopConfig {
        direction: crate::Direction::Outbound,
        protocol,
        upstream_tls: true,
        upstream_name: Some(name.to_owned()),
        ..hop("to b", upstream)
    };
    RunningSidecar::start(&with(&authority.issue(folder, "a"), hop))
}

#[tokio::test]
async fn sidecars_of_one_authority_trust_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let inner = inner(&authority, folder.path(), Protocol::Http, server(echo).await);
    let outer = outer(&authority, folder.path(), Protocol::Http, inner.addresses[0], "b");
    let mut client = Client::connect(outer.addresses[0]).await;
    let large = "x".repeat(300_000);
    for _ in 0..3 {
        let response = client.send(post(large.clone())).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.body().ends_with(large.as_bytes()));
    }
}

#[tokio::test]
async fn tcp_is_encrypted_too() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let upstream = raw(|mut stream| async move {
        let byte = stream.read_u8().await.unwrap();
        stream.write_u8(byte + 1).await.unwrap();
    });
    let inner = inner(&authority, folder.path(), Protocol::Tcp, upstream.await);
    let outer = outer(&authority, folder.path(), Protocol::Tcp, inner.addresses[0], "b");
    let mut caller = TcpStream::connect(outer.addresses[0]).await.unwrap();
    caller.write_u8(41).await.unwrap();
    assert_eq!(caller.read_u8().await.unwrap(), 42);
}

#[tokio::test]
async fn another_name_or_another_authority_is_not_trusted() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let authority = Authority::new();
    let inner = inner(&authority, folder.path(), Protocol::Http, server(echo).await);
    let wrong_name = outer(&authority, folder.path(), Protocol::Http, inner.addresses[0], "c");
    let stranger = outer(&Authority::new(), other.path(), Protocol::Http, inner.addresses[0], "b");
    for sidecar in [wrong_name, stranger] {
        let response = Client::connect(sidecar.addresses[0]).await.get("/").await;
        assert_eq!((response.status(), word(&response).as_str()), (StatusCode::BAD_GATEWAY, "upstream-tls"));
    }
}

#[tokio::test]
async fn the_plain_and_those_without_a_certificate_are_kept_out() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let inner = inner(&authority, folder.path(), Protocol::Http, server(echo).await);
    let mut plain = TcpStream::connect(inner.addresses[0]).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    let mut response = Vec::new();
    let _ = plain.read_to_end(&mut response).await;
    assert!(!String::from_utf8_lossy(&response).contains("HTTP/1.1"), "{response:?}");

    let mut roots = RootCertStore::empty();
    let ca = std::fs::read(folder.path().join("b-ca.pem")).unwrap();
    roots.add(CertificateDer::from_pem_slice(&ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let nameless = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(inner.addresses[0]).await.unwrap();
    let name = ServerName::try_from("b").unwrap();
    // With TLS 1.3 the caller believes in the connection until it reads.
    let connected = TlsConnector::from(Arc::new(nameless)).connect(name, stream).await.unwrap();
    let (mut reading, mut writing) = tokio::io::split(connected);
    let _ = writing.write_all(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n").await;
    let refused = reading.read_u8().await.unwrap_err().to_string();
    assert!(refused.contains("CertificateRequired"), "{refused}");
}

#[tokio::test]
async fn callers_that_never_shake_hands_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    for protocol in [Protocol::Http, Protocol::Tcp] {
        let tls = authority.issue(folder.path(), "b");
        let mut config = with(&tls, crate::HopConfig { protocol, accept_tls: true, ..hop("in", server(echo).await) });
        config.limits.connections_max = 4;
        config.limits.connect_timeout_ms = 1_000_000;
        let inner = RunningSidecar::start(&config);
        let mut silent = Vec::new();
        for _ in 0..12 {
            silent.push(TcpStream::connect(inner.addresses[0]).await.unwrap());
        }
        let outer = outer(&authority, folder.path(), protocol, inner.addresses[0], "b");
        let asked = async { Client::connect(outer.addresses[0]).await.get("/").await };
        assert_eq!(within_hang(asked).await.status(), StatusCode::OK, "{protocol:?}");
    }
}
