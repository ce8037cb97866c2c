//! The cookies of one user (RFC 6265).
//!
//! Cookies are distinguished by name, domain and path; longer paths come first, then older cookies. The jar is small:
//! when it is full, the oldest cookie is dropped. There is no list of public suffixes: of domains above the host, those
//! of one label are refused, such as `com`. `HttpOnly` and `SameSite` are ignored, because they apply to scripts and
//! pages in browsers.

use std::net::IpAddr;

use super::cookie_date;
use super::redirect::{Origin, Security};
use crate::request::{header_of, path_of};

/// The most cookies of a user.
const COOKIES_MAX: usize = 64;
/// Maximum bytes of a user's cookies: names, values, paths and domains together.
const JAR_BYTES_MAX: usize = 8 * 1024;

/// See the module. The oldest cookie is the first.
#[derive(Debug, Default)]
pub(super) struct Jar {
    cookies: Vec<Cookie>,
    bytes: usize,
}

#[derive(Debug)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
    domain: Domain,
    /// In Unix seconds; `None` if it lasts as long as the jar.
    expires_s: Option<i64>,
}

/// The hosts to which a cookie is sent. Names are in lower case.
#[derive(Debug, PartialEq, Eq)]
enum Domain {
    /// Only the host that set it.
    Host(Vec<u8>),
    /// This host and its subdomains.
    Below(Vec<u8>),
}

impl Domain {
    /// The domain of a cookie with this `Domain` attribute if `host` sets it; `None` if the host may not set it (RFC
    /// 6265, 5.3, steps 4 to 6).
    fn new(attribute: Option<&[u8]>, host: Vec<u8>) -> Option<Self> {
        let Some(attribute) = attribute else { return Some(Self::Host(host)) };
        let domain = attribute.strip_prefix(b".").unwrap_or(attribute).to_ascii_lowercase();
        let is_label = !domain.contains(&b'.');
        match domain_matches(&host, &domain) {
            true if is_label && domain == host => Some(Self::Host(host)),
            true if !is_label => Some(Self::Below(domain)),
            _ => None,
        }
    }

    fn name(&self) -> &[u8] {
        match self {
            Self::Host(name) | Self::Below(name) => name,
        }
    }

    fn covers(&self, host: &[u8]) -> bool {
        match self {
            Self::Host(name) => name == host,
            Self::Below(name) => domain_matches(host, name),
        }
    }
}

impl Cookie {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + self.path.len() + self.domain.name().len()
    }

    fn is_same_as(&self, other: &Cookie) -> bool {
        self.name == other.name && self.domain.name() == other.domain.name() && self.path == other.path
    }

    fn is_over(&self, now_s: i64) -> bool {
        self.expires_s.is_some_and(|expires_s| expires_s <= now_s)
    }
}

impl Jar {
    pub(super) fn clear(&mut self) {
        self.cookies.clear();
        self.bytes = 0;
    }

    /// Stores the value of a `Set-Cookie` in the response to a request for `path`, its query included. A value is
    /// ignored if it is not a cookie, is for another domain, or is for encrypted connections only and arrived over a
    /// plain one.
    pub(super) fn set(&mut self, set_cookie: &[u8], path: &[u8], origin: &Origin<'_>, now_s: i64) {
        let Some((cookie, needs)) = parse(set_cookie, path, origin.host, now_s) else { return };
        if needs == Security::Tls && origin.security == Security::Plain {
            return;
        }
        let known = self.cookies.iter().position(|known| known.is_same_as(&cookie));
        if cookie.is_over(now_s) {
            known.into_iter().for_each(|index| self.remove(index));
        } else if cookie.bytes() <= JAR_BYTES_MAX {
            self.bytes += cookie.bytes();
            match known {
                // It keeps its age (RFC 6265, 5.3, step 11).
                Some(index) => {
                    self.bytes -= self.cookies[index].bytes();
                    self.cookies[index] = cookie;
                }
                None => self.cookies.push(cookie),
            }
            self.shrink(now_s);
        }
    }

    fn shrink(&mut self, now_s: i64) {
        while self.cookies.len() > COOKIES_MAX || self.bytes > JAR_BYTES_MAX {
            let over = self.cookies.iter().position(|cookie| cookie.is_over(now_s));
            self.remove(over.unwrap_or(0));
        }
    }

    fn remove(&mut self, index: usize) {
        self.bytes -= self.cookies.remove(index).bytes();
    }

    /// Appends the cookies for the request whose first line and `Host` are in `out`, between `before` and `after`.
    /// Appends nothing if there are no cookies.
    pub(super) fn append(&self, now_s: i64, before: &[u8], after: &[u8], out: &mut Vec<u8>) {
        if self.cookies.is_empty() {
            return;
        }
        let (path, host) = (without_query(path_of(out)), host_name(header_of(out, "host").unwrap_or_default()));
        let fits = |cookie: &&Cookie| {
            !cookie.is_over(now_s) && path_matches(path, &cookie.path) && cookie.domain.covers(&host)
        };
        let mut chosen: Vec<&Cookie> = self.cookies.iter().filter(fits).collect();
        chosen.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        for (index, cookie) in chosen.iter().enumerate() {
            out.extend_from_slice(if index == 0 { before } else { b"; " });
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
        }
        if !chosen.is_empty() {
            out.extend_from_slice(after);
        }
    }
}

fn without_query(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'?').next().unwrap_or(path)
}

/// The host of a `Host` header, without its port.
fn host_name(authority: &[u8]) -> Vec<u8> {
    let end = match authority.iter().position(|byte| *byte == b']') {
        Some(end) => end + 1,
        None => authority.iter().position(|byte| *byte == b':').unwrap_or(authority.len()),
    };
    authority[..end].to_ascii_lowercase()
}

/// RFC 6265, 5.1.3.
fn domain_matches(host: &[u8], domain: &[u8]) -> bool {
    let is_address = || {
        let text = std::str::from_utf8(host).unwrap_or_default();
        text.starts_with('[') || text.parse::<IpAddr>().is_ok()
    };
    match host.strip_suffix(domain) {
        Some(b"") => true,
        Some(above) => !domain.is_empty() && above.ends_with(b".") && !is_address(),
        None => false,
    }
}

/// RFC 6265, 5.1.4.
fn path_matches(path: &[u8], of_cookie: &[u8]) -> bool {
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || of_cookie.ends_with(b"/") || rest.starts_with(b"/"))
}

/// The folder of a request's path (RFC 6265, 5.1.4).
fn default_path(path: &[u8]) -> &[u8] {
    let path = without_query(path);
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(last) if last > 0 && path.starts_with(b"/") => &path[..last],
        _ => b"/",
    }
}

/// RFC 6265, 5.2, and whether the cookie is for encrypted connections only.
fn parse(set_cookie: &[u8], path: &[u8], host: &[u8], now_s: i64) -> Option<(Cookie, Security)> {
    if set_cookie.iter().any(u8::is_ascii_control) {
        return None;
    }
    let mut parts = set_cookie.split(|byte| *byte == b';');
    let (name, value) = pair(parts.next()?);
    let value = value.filter(|_| !name.is_empty())?;
    let (mut own_path, mut domain) = (None, None);
    let (mut expires_s, mut max_age_s, mut needs) = (None, None, Security::Plain);
    for (attribute, value) in parts.map(pair) {
        let value = value.unwrap_or(b"");
        match attribute.to_ascii_lowercase().as_slice() {
            b"path" => own_path = Some(value).filter(|path| path.starts_with(b"/")),
            b"domain" => domain = Some(value).filter(|value| !value.is_empty()).or(domain),
            b"expires" => expires_s = cookie_date::parse(value).or(expires_s),
            b"max-age" => max_age_s = age(value).or(max_age_s),
            b"secure" => needs = Security::Tls,
            _ => {}
        }
    }
    let expires_s = max_age_s.map(|age_s| now_s.saturating_add(age_s)).or(expires_s);
    let path = own_path.unwrap_or_else(|| default_path(path)).to_vec();
    let domain = Domain::new(domain, host_name(host))?;
    Some((Cookie { name: name.to_vec(), value: value.to_vec(), path, domain, expires_s }, needs))
}

fn pair(part: &[u8]) -> (&[u8], Option<&[u8]>) {
    match part.iter().position(|byte| *byte == b'=') {
        Some(at) => (part[..at].trim_ascii(), Some(part[at + 1..].trim_ascii())),
        None => (part.trim_ascii(), None),
    }
}

/// Seconds, however many digits they have.
fn age(value: &[u8]) -> Option<i64> {
    let (sign, digits) = value.strip_prefix(b"-").map_or((1, value), |digits| (-1, digits));
    let are_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let sum = |sum: i64, digit: &u8| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    are_digits.then(|| sign * digits.iter().fold(0, sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_S: i64 = 784_111_777;

    const HOST: &str = "Shop.example.com:8080";

    fn origin(host: &str, security: Security) -> Origin<'_> {
        Origin { security, host: host.as_bytes(), address: ([127, 0, 0, 1], 8080).into() }
    }

    fn jar_of(host: &str, set_cookies: &[&str]) -> Jar {
        let (mut jar, origin) = (Jar::default(), origin(host, Security::Plain));
        set_cookies.iter().for_each(|cookie| jar.set(cookie.as_bytes(), b"/shop/cart?x=/y/", &origin, NOW_S));
        jar
    }

    fn jar(set_cookies: &[&str]) -> Jar {
        jar_of(HOST, set_cookies)
    }

    fn sent_to(host: &str, jar: &Jar, path: &str, now_s: i64) -> String {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n");
        let mut out = head.clone().into_bytes();
        jar.append(now_s, b"Cookie: ", b"!", &mut out);
        String::from_utf8(out).unwrap()[head.len()..].to_owned()
    }

    fn sent(jar: &Jar, path: &str, now_s: i64) -> String {
        sent_to(HOST, jar, path, now_s)
    }

    #[test]
    fn a_cookie_whose_domain_does_not_match_the_host_is_ignored() {
        let cases = [
            (HOST, "", true),
            (HOST, "shop.example.com", true),
            (HOST, ".SHOP.Example.com", true),
            (HOST, "example.com", true),
            (HOST, "com", false),
            (HOST, ".", false),
            (HOST, "other.example", false),
            (HOST, "op.example.com", false),
            (HOST, "www.shop.example.com", false),
            (HOST, "other.example; Domain=example.com", true),
            (HOST, "other.example; Domain=", false),
            (HOST, "example.com; Domain=other.example", false),
            ("localhost", "localhost", true),
            ("localhost", "localdomain", false),
            ("127.0.0.1:80", "127.0.0.1", true),
            ("127.0.0.1:80", "0.0.1", false),
            ("[::1]:80", "[::1]", true),
            ("[::1]:80", "1]", false),
            ("", "example.com", false),
        ];
        for (host, domain, is_kept) in cases {
            let held = jar_of(host, &[&format!("a=1; Domain={domain}")]);
            assert_eq!(held.cookies.len(), usize::from(is_kept), "{domain:?} from {host:?}");
        }
    }

    #[test]
    fn a_cookie_goes_to_the_hosts_of_its_domain() {
        let held = jar(&["a=1; Path=/", "b=2; Path=/; Domain=example.com", "b=3; Path=/; Domain=shop.example.com"]);
        assert_eq!(sent_to("SHOP.example.com:1", &held, "/", NOW_S), "Cookie: a=1; b=2; b=3!");
        assert_eq!(sent_to("pay.shop.example.com", &held, "/", NOW_S), "Cookie: b=2; b=3!");
        assert_eq!(sent_to("example.com", &held, "/", NOW_S), "Cookie: b=2!");
        assert_eq!(sent_to("badexample.com", &held, "/", NOW_S), "");
    }

    #[test]
    fn cookies_go_where_their_path_says() {
        let jar = jar(&["a=1", "b=2; Path=/", "c=3; path=/shop/; HttpOnly", "d=4; Path=/shopping", "e=5; Path=x"]);
        assert_eq!(sent(&jar, "/shop/cart?q", NOW_S), "Cookie: c=3; a=1; e=5; b=2!");
        assert_eq!(sent(&jar, "/shop", NOW_S), "Cookie: a=1; e=5; b=2!");
        assert_eq!(sent(&jar, "/shopping", NOW_S), "Cookie: d=4; b=2!");
        assert_eq!(sent(&jar, "/", NOW_S), "Cookie: b=2!");
        assert_eq!(sent(&Jar::default(), "/", NOW_S), "");
    }

    #[test]
    fn values_are_taken_as_they_are_and_what_is_no_cookie_is_not() {
        let set = ["a = \"x y=z\" ; secure=no", "b=", "=c", "d", "", "e=1\tx", "f=ü"];
        // `secure=no` says `Secure`, as the standard has it.
        assert_eq!(sent(&jar(&set), "/shop", NOW_S), "Cookie: b=; f=ü!");
        let mut jar = Jar::default();
        jar.set(b"a = \"x y=z\" ; Secure", b"/", &origin(HOST, Security::Tls), NOW_S);
        assert_eq!(sent(&jar, "/", NOW_S), "Cookie: a=\"x y=z\"!");
    }

    #[test]
    fn a_cookie_is_replaced_kept_until_its_time_and_deleted_by_a_past_one() {
        let set = ["a=1; Max-Age=10", "a=2; Max-Age=20", "b=1; Expires=Sun, 06 Nov 1994 08:49:47 GMT", "c=1"];
        let mut held = jar(&set);
        assert_eq!(sent(&held, "/shop", NOW_S + 9), "Cookie: a=2; b=1; c=1!");
        assert_eq!(sent(&held, "/shop", NOW_S + 10), "Cookie: a=2; c=1!");
        assert_eq!(sent(&held, "/shop", NOW_S + 20), "Cookie: c=1!");
        for delete in
            ["a=; Max-Age=0", "b=; Max-Age=-99999999999999999999", "c=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]
        {
            held.set(delete.as_bytes(), b"/shop/", &origin(HOST, Security::Plain), NOW_S);
        }
        assert_eq!((held.cookies.len(), held.bytes), (0, 0));
        let lasting = jar(&["a=1; Max-Age=99999999999999999999; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]);
        assert_eq!(sent(&lasting, "/shop", NOW_S), "Cookie: a=1!");
    }

    #[test]
    fn over_its_limits_the_oldest_cookie_goes() {
        let many: Vec<String> = (0..COOKIES_MAX + 2).map(|i| format!("n{i}=v; Path=/")).collect();
        let held = jar(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(held.cookies.len(), COOKIES_MAX);
        assert_eq!(held.cookies[0].name, b"n2");
        let large = "x".repeat(JAR_BYTES_MAX / 2);
        let held = jar(&["a=1", &format!("b={large}"), &format!("c={large}"), &format!("d={large}{large}")]);
        assert_eq!(held.cookies.iter().map(|cookie| cookie.name.as_slice()).collect::<Vec<_>>(), [b"c"]);
    }

    proptest! {
        #[test]
        fn any_cookies_keep_the_limits_and_cannot_break_a_header(
            cookies in proptest::collection::vec(("[a-z=; \\x00-\\xff]{0,30}", "[a-zA-Z0-9=;/ -]{0,60}"), 0..90),
        ) {
            let mut jar = Jar::default();
            for (name, rest) in &cookies {
                jar.set(format!("{name}={rest}").as_bytes(), b"/", &origin(HOST, Security::Plain), NOW_S);
            }
            prop_assert!(jar.cookies.len() <= COOKIES_MAX && jar.bytes <= JAR_BYTES_MAX);
            prop_assert_eq!(jar.bytes, jar.cookies.iter().map(Cookie::bytes).sum::<usize>());
            prop_assert!(!sent(&jar, "/", NOW_S).bytes().any(|byte| byte.is_ascii_control()));
        }
    }
}
