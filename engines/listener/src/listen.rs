//! Where a server listens, and the rule about addresses that other machines can reach.
//!
//! Loopback is for anyone on this machine. At any other address a server listens only with something that keeps strangers
//! out, or when it is told to serve anyone. What keeps them out differs from server to server, so [`Guard`] names it; only
//! a bearer token is checked here.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use tokio::net::TcpListener;

use crate::Token;

/// The path that probes of health call, which know no token.
const HEALTH: &str = "/health";

/// Protection of a server against strangers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// Nothing, which is enough on loopback.
    Nothing,
    /// A bearer token, which requests have to present.
    Token(Token),
    /// A check of the server's own: signatures, certificates.
    Own,
    /// Nothing, on purpose: the server is for anyone who can reach it.
    Insecure,
}

/// The address that a server listens on, and the token that it asks for there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    address: SocketAddr,
    token: Option<Token>,
}

/// An address that other machines can reach, without protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot listen on {0} without protection: other machines can reach it")]
pub struct Exposed(pub SocketAddr);

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct CannotListen {
    /// The address; port 0 is any free one.
    pub address: SocketAddr,
    /// Error of the system.
    pub source: io::Error,
}

impl Listen {
    /// A port of loopback, 0 for any free one, for anyone on this machine.
    #[must_use]
    pub fn loopback(port: u16) -> Self {
        Self { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), token: None }
    }

    /// An address, port 0 for any free one, with this protection.
    ///
    /// # Errors
    ///
    /// [`Exposed`] if other machines can reach it and nothing protects it.
    pub fn new(address: SocketAddr, guard: Guard) -> Result<Self, Exposed> {
        match guard {
            Guard::Nothing if !is_loopback(address.ip()) => Err(Exposed(address)),
            Guard::Token(token) => Ok(Self { address, token: Some(token) }),
            Guard::Nothing | Guard::Own | Guard::Insecure => Ok(Self { address, token: None }),
        }
    }

    /// The address as it was requested.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token that requests have to present.
    #[must_use]
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Whether a request is served: it presents the token, or is a probe of health that presents none. A probe with a
    /// wrong token is refused, so that a caller can try its token there.
    #[must_use]
    pub fn admits(&self, path: &str, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        token.is_shown(headers) || (path == HEALTH && !headers.contains_key(AUTHORIZATION))
    }

    /// Takes the address. Returns the listener and where it is now.
    ///
    /// # Errors
    ///
    /// [`CannotListen`] if the port is taken, the address is not one of this machine, or either is not allowed.
    pub async fn bind(&self) -> Result<(TcpListener, SocketAddr), CannotListen> {
        let address = self.address;
        let refused = |source| CannotListen { address, source };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let local = listener.local_addr().map_err(refused)?;
        Ok((listener, local))
    }
}

impl CannotListen {
    /// Advice, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        advice(&self.source)
    }
}

/// Advice about an error of listening, if there is any.
#[must_use]
pub fn advice(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::AddrInUse => Some("another process listens there: end it or choose another port"),
        io::ErrorKind::AddrNotAvailable => {
            Some("this machine has no such address: `ip address` lists those it has, and 0.0.0.0 is all of them")
        }
        io::ErrorKind::PermissionDenied => Some("ports below 1024 are for root: choose a higher one"),
        _ => None,
    }
}

/// Whether only this machine can reach an address.
#[must_use]
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn token() -> Token {
        Token::parse("secret").unwrap()
    }

    #[test]
    fn beyond_loopback_nobody_listens_without_protection() {
        for (address, is_open) in [
            ("127.0.0.1:80", true),
            ("127.9.9.9:0", true),
            ("[::1]:80", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("0.0.0.0:80", false),
            ("[::]:80", false),
            ("10.0.0.7:80", false),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            let bare = Listen::new(address, Guard::Nothing);
            assert_eq!(bare.is_ok(), is_open, "{address}");
            for guard in [Guard::Token(token()), Guard::Own, Guard::Insecure] {
                assert_eq!(Listen::new(address, guard).map(|listen| listen.address()), Ok(address));
            }
        }
        let error = Listen::new("0.0.0.0:80".parse().unwrap(), Guard::Nothing).unwrap_err();
        assert_eq!(error.to_string(), "cannot listen on 0.0.0.0:80 without protection: other machines can reach it");
    }

    #[test]
    fn requests_present_the_token_and_probes_may_leave_it_out() {
        let guarded = Listen::new("0.0.0.0:80".parse().unwrap(), Guard::Token(token())).unwrap();
        let with = |value: &'static str| HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]);
        let cases = [
            ("/items", HeaderMap::new(), false),
            ("/items", with("Bearer wrong"), false),
            ("/items", with("Bearer secret"), true),
            ("/health", HeaderMap::new(), true),
            ("/health", with("Bearer secret"), true),
            ("/health", with("Bearer wrong"), false),
            ("/healthy", HeaderMap::new(), false),
        ];
        for (path, headers, is_served) in cases {
            assert_eq!(guarded.admits(path, &headers), is_served, "{path} {headers:?}");
            assert!(Listen::loopback(0).admits(path, &headers));
        }
    }

    #[tokio::test]
    async fn an_address_that_is_taken_or_foreign_is_named_with_advice() {
        let (_taken, address) = Listen::loopback(0).bind().await.unwrap();
        let taken = Listen::new(address, Guard::Nothing).unwrap().bind().await.unwrap_err();
        assert_eq!(taken.to_string(), format!("cannot listen on {address}"));
        assert!(taken.hint().unwrap().starts_with("another process listens there"));
        // RFC 5737 keeps 192.0.2.0/24 for documentation: no machine has it.
        let foreign = Listen::new("192.0.2.1:0".parse().unwrap(), Guard::Insecure).unwrap().bind().await.unwrap_err();
        assert!(foreign.hint().unwrap().starts_with("this machine has no such address"));
    }
}
