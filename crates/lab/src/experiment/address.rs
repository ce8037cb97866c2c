//! The address of a system that runs already: `http://host:port`.

use super::mistake::{Wrong, shortened};

/// Takes the `host:port` or `host` out of an `http://` URL that has no more than that.
pub(super) fn parse(url: &str) -> Result<&str, Wrong> {
    let expected = || Wrong::new(format!("expected `http://host:port`, found \"{}\"", shortened(url)));
    let Some(authority) = url.strip_prefix("http://") else {
        let is_secure = url.starts_with("https://");
        return Err(if is_secure { expected().hint("load is sent over plain http only") } else { expected() });
    };
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    if authority.contains(['/', '?', '#']) {
        return Err(expected().hint("the path belongs into `request`"));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_bare_ipv6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    let is_host = !host.is_empty() && !is_bare_ipv6 && host.bytes().all(|b| b.is_ascii_graphic() && b != b'@');
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if is_host && is_port { Ok(authority) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_host_and_perhaps_a_port() {
        let cases = [
            ("http://localhost:8080", Some("localhost:8080")),
            ("http://10.0.0.1:80/", Some("10.0.0.1:80")),
            ("http://[::1]:80", Some("[::1]:80")),
            ("http://orders.example", Some("orders.example")),
            ("https://orders.example", None),
            ("http://", None),
            ("http://:80", None),
            ("http://a:0", None),
            ("http://a:99999", None),
            ("http://a b:80", None),
            ("http://::1:80", None),
            ("http://user@a:80", None),
            ("http://a/path", None),
        ];
        for (url, expected) in cases {
            assert_eq!(parse(url).ok(), expected, "{url}");
        }
    }
}
