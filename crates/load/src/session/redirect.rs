//! Where a redirect leads (RFC 9110, 15.4; RFC 3986, 5.2), as long as it stays with the same target.

use narrows_model::load::ErrorKind;

use super::Failure;
use crate::encoding::percent_encode;
use crate::recorder::Cause;

/// The most of a foreign host's name that an error repeats, in characters.
const HOST_CHARS_MAX: usize = 100;

/// Whether connections are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Security {
    Plain,
    Tls,
}

/// Whom a request was sent to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) security: Security,
    /// The `Host` header's value.
    pub(crate) host: &'a [u8],
    /// The address connected to, `127.0.0.1:80`.
    pub(crate) address: std::net::SocketAddr,
}

/// The request that follows a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) method: HopMethod,
    /// Path and query.
    pub(crate) path: Vec<u8>,
}

/// The method of a request that follows a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HopMethod {
    /// The same, with the same body.
    AsItWas,
    /// `GET`, without a body.
    Get,
}

/// Whether a status requires another request.
pub(super) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// The method after a redirect.
pub(super) fn method_after(status: u16, method: &str) -> HopMethod {
    match (status, method) {
        (303, "GET" | "HEAD") => HopMethod::AsItWas,
        (303, _) | (301 | 302, "POST") => HopMethod::Get,
        _ => HopMethod::AsItWas,
    }
}

/// Path and query that a `Location` means for a request for `path`.
///
/// # Errors
/// When it leads to another host, port or scheme.
pub(super) fn resolve(location: &[u8], path: &[u8], origin: &Origin<'_>) -> Result<Vec<u8>, Failure> {
    let location = until(location.trim_ascii(), b"#");
    // Where an authority stands, what follows it is resolved against its root.
    let (reference, path): (_, &[u8]) = match scheme(location) {
        Some((scheme, rest)) => {
            let own: &[u8] = if origin.security == Security::Tls { b"https" } else { b"http" };
            match rest.strip_prefix(b"//") {
                Some(rest) if scheme.eq_ignore_ascii_case(own) => (own_path(rest, origin)?, b"/"),
                _ => return Err(elsewhere(until(location, b"?"))),
            }
        }
        None => match location.strip_prefix(b"//") {
            Some(rest) => (own_path(rest, origin)?, b"/"),
            None => (location, path),
        },
    };
    let mut joined = Vec::with_capacity(path.len() + reference.len());
    let (base, query) = path.split_at(until(path, b"?").len());
    match reference.first() {
        Some(b'/') => {}
        Some(b'?') => joined.extend_from_slice(base),
        None => joined.extend([base, query].concat()),
        Some(_) => {
            let folder = base.iter().rposition(|byte| *byte == b'/').map_or(b"/".as_slice(), |last| &base[..=last]);
            joined.extend_from_slice(folder);
        }
    }
    joined.extend_from_slice(reference);
    Ok(without_dots(&joined))
}

fn until<'a>(bytes: &'a [u8], ends: &[u8]) -> &'a [u8] {
    &bytes[..bytes.iter().position(|byte| ends.contains(byte)).unwrap_or(bytes.len())]
}

fn scheme(location: &[u8]) -> Option<(&[u8], &[u8])> {
    let (scheme, rest) = location.split_at(until(location, b":/?").len());
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b));
    if is_scheme { rest.strip_prefix(b":").map(|rest| (scheme, rest)) } else { None }
}

/// The path after the authority at the beginning of `rest`, if that is the origin.
fn own_path<'a>(rest: &'a [u8], origin: &Origin<'_>) -> Result<&'a [u8], Failure> {
    let (authority, path) = rest.split_at(until(rest, b"/?").len());
    let port: &[u8] = if origin.security == Security::Tls { b":443" } else { b":80" };
    let bare = |host: &[u8]| host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase();
    if bare(authority) != bare(origin.host) && bare(authority) != bare(origin.address.to_string().as_bytes()) {
        return Err(elsewhere(authority));
    }
    Ok(path)
}

fn elsewhere(host: &[u8]) -> Failure {
    let shown: String = host.escape_ascii().to_string().chars().take(HOST_CHARS_MAX).collect();
    let cause = Cause::Said(format!("redirect to another host {shown}").into());
    Failure { kind: ErrorKind::Protocol, cause: Some(cause) }
}

/// Takes `.` and `..` out of a path (RFC 3986, 5.2.4) and encodes what must not stand in a request line.
fn without_dots(path_and_query: &[u8]) -> Vec<u8> {
    let (path, query) = path_and_query.split_at(until(path_and_query, b"?").len());
    let segments: Vec<&[u8]> = path.split(|byte| *byte == b'/').skip(1).collect();
    let mut kept: Vec<&[u8]> = Vec::with_capacity(segments.len());
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        match *segment {
            b"." | b".." => {
                if *segment == b".." {
                    kept.pop();
                }
                if is_last {
                    kept.push(b"");
                }
            }
            segment => kept.push(segment),
        }
    }
    let mut out = Vec::with_capacity(path_and_query.len() + 1);
    for segment in &kept {
        out.push(b'/');
        percent_encode(segment, |byte| byte.is_ascii_graphic(), &mut out);
    }
    if kept.is_empty() {
        out.push(b'/');
    }
    percent_encode(query, |byte| byte.is_ascii_graphic(), &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolved(location: &[u8], path: &str) -> Result<String, String> {
        let origin = Origin { security: Security::Plain, host: b"Shop:80", address: ([127, 0, 0, 1], 8080).into() };
        let resolved = resolve(location, path.as_bytes(), &origin);
        resolved.map(|path| String::from_utf8(path).unwrap()).map_err(|failure| failure.cause.unwrap().to_string())
    }

    #[test]
    fn references_are_resolved_as_the_standard_says() {
        let cases = [
            ("/a/b", "/x/y?z", "/a/b"),
            ("http://shop", "/x", "/"),
            ("HTTP://SHOP:80?q=1", "/x", "/?q=1"),
            ("http://127.0.0.1:8080/a#top", "/x", "/a"),
            ("//shop/a", "/x", "/a"),
            ("c", "/a/b?q=1", "/a/c"),
            ("./c/../d/", "/a/b", "/a/d/"),
            ("../../../c?x=../y", "/a/b/d", "/c?x=../y"),
            ("..", "/a/b/c", "/a/"),
            ("?q=2", "/a/b?q=1", "/a/b?q=2"),
            ("", "/a?q", "/a?q"),
            ("#only", "/a?q", "/a?q"),
            (" /a b\u{1}ü ", "/", "/a%20b%01%C3%BC"),
            ("/at?to=http://other/", "/", "/at?to=http://other/"),
            ("x", "*", "/x"),
        ];
        for (location, path, expected) in cases {
            assert_eq!(resolved(location.as_bytes(), path).as_deref(), Ok(expected), "{location} from {path}");
        }
    }

    #[test]
    fn another_host_port_or_scheme_is_refused_by_name() {
        let cases = [
            ("http://other/a?b", "other"),
            ("http://shop:81/", "shop:81"),
            ("https://shop/a", "https://shop/a"),
            ("//evil\r\n.example/x", "evil\\r\\n.example"),
            ("mailto:me", "mailto:me"),
        ];
        for (location, host) in cases {
            let expected = format!("redirect to another host {host}");
            assert_eq!(resolved(location.as_bytes(), "/"), Err(expected), "{location}");
        }
    }

    #[test]
    fn methods_change_as_browsers_change_them() {
        use HopMethod::{AsItWas, Get};
        let cases = [
            (301, "POST", Get),
            (302, "POST", Get),
            (301, "PUT", AsItWas),
            (303, "PUT", Get),
            (303, "HEAD", AsItWas),
            (307, "POST", AsItWas),
            (308, "POST", AsItWas),
        ];
        for (status, method, expected) in cases {
            assert_eq!(method_after(status, method), expected, "{status} {method}");
        }
        assert!(!is_redirect(300) && !is_redirect(304) && is_redirect(308));
    }

    proptest! {
        #[test]
        fn any_location_gives_a_path_that_fits_a_request_line(location: Vec<u8>, path in "[/*][a-z/?.]{0,9}") {
            if let Ok(path) = resolved(&location, &path) {
                prop_assert!(path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic()), "{}", path);
            }
        }
    }
}
