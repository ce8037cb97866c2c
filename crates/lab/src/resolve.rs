//! From `host` or `host:port` to an address.

use std::net::{SocketAddr, ToSocketAddrs};

/// The first address of a URL's authority; port 80 when it names none. One address only: spreading load over all
/// addresses of a name would compare different machines.
///
/// # Errors
/// In words, when the name has no address.
pub fn resolve(authority: &str) -> Result<SocketAddr, String> {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let with_port = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let mut addresses = with_port.to_socket_addrs().map_err(|error| error.to_string())?;
    addresses.next().ok_or_else(|| "the name has no address".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::resolve::resolve;

    #[test]
    fn a_port_may_be_left_out() {
        assert_eq!(resolve("127.0.0.1:8080").unwrap().to_string(), "127.0.0.1:8080");
        assert_eq!(resolve("127.0.0.1").unwrap().to_string(), "127.0.0.1:80");
        assert_eq!(resolve("[::1]").unwrap().to_string(), "[::1]:80");
        assert!(resolve("no such host").is_err());
    }
}
