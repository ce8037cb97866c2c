//! The port that serves HTTP and HTTPS.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::*;

async fn account(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    response
}

fn trusting(certificate: &Path) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[test]
fn one_port_serves_http_and_https_and_names_the_address_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Some(folder.path().to_owned());
    let config = Config {
        listen: Listen::loopback(0),
        tls,
        access: Access::Anyone,
        documents_per_container: 0,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Server::open_with(config, None).await.unwrap();
        let (address, connector) = (server.address(), trusting(server.certificate().unwrap()));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async { stopped.await.unwrap() }));
        let plain = account(TcpStream::connect(address).await.unwrap()).await;
        assert!(plain.contains(&format!("\"http://{address}/\"")), "{plain}");
        for name in ["localhost", "127.0.0.1"] {
            let stream = TcpStream::connect(address).await.unwrap();
            let secure = connector.connect(ServerName::try_from(name).unwrap(), stream).await.unwrap();
            let secure = account(secure).await;
            assert!(secure.contains(&format!("\"https://{address}/\"")), "{secure}");
        }
        let stream = TcpStream::connect(address).await.unwrap();
        assert!(connector.connect(ServerName::try_from("example.com").unwrap(), stream).await.is_err());

        // A broken handshake ends its own connection and no other.
        let mut broken = TcpStream::connect(address).await.unwrap();
        broken.write_all(&[22, 3, 1, 0, 5, 1, 2, 3, 4, 5]).await.unwrap();
        let mut rest = Vec::new();
        // The store may have reset the connection.
        let _ = broken.read_to_end(&mut rest).await;
        account(TcpStream::connect(address).await.unwrap()).await;
        stop.send(()).unwrap();
        serving.await.unwrap().unwrap();
    });
}
