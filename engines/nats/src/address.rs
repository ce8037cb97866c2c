//! The text that says which servers, and as whom.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

const PORT: u16 = 4222;
const SERVERS_MAX: usize = 32;

/// Expectation, for errors.
const EXPECTED: &str = "expected nats://user:password@host:port, with special characters of the password percent-encoded, \
                        further servers after commas, tls:// for encryption, and ?ca=FILE, ?creds=FILE or ?nkey=FILE";

/// Servers of one system, and how to be let in.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsAddress {
    /// `host:port` of each server, one or more.
    pub servers: Vec<String>,
    pub(crate) identity: Identity,
    /// Whether only an encrypted connection will do.
    pub(crate) requires_tls: bool,
    /// Certificates of the authorities that are trusted beside the system's.
    pub(crate) authorities: Option<PathBuf>,
    /// The certificate and the key that the client shows.
    pub(crate) client_certificate: Option<(PathBuf, PathBuf)>,
}

/// Identity that the client presents.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    Nobody,
    User {
        name: String,
        password: String,
    },
    Token(String),
    /// A file with a JWT and the seed of its key, as `nsc` writes it.
    Credentials(PathBuf),
    /// A file with the seed of an NKey.
    Seed(PathBuf),
}

/// An address, and what the text says besides.
pub struct AddressParts {
    /// The address.
    pub address: NatsAddress,
    /// The path after the servers, without its slash; empty when there is none.
    pub path: String,
    /// Options that do not concern the connection, in order.
    pub options: Vec<(String, String)>,
}

/// The servers, and nothing of who connects.
impl std::fmt::Debug for NatsAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// The servers, for people.
impl std::fmt::Display for NatsAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NATS {}", self.servers.join(","))
    }
}

impl NatsAddress {
    /// Servers that let anybody in, at `host:port`.
    pub fn open_to_all(server: impl Into<String>) -> Self {
        Self {
            servers: vec![server.into()],
            identity: Identity::Nobody,
            requires_tls: false,
            authorities: None,
            client_certificate: None,
        }
    }

    /// Reads an address that has neither a path nor options beside those of the connection.
    ///
    /// # Errors
    /// As [`AddressParts::parse`], and if the text says more.
    pub fn parse(text: &str) -> Result<Self, String> {
        let AddressParts { address, path, options } = AddressParts::parse(text)?;
        match options.first() {
            _ if !path.is_empty() => Err(format!("the address has a path, {EXPECTED}")),
            Some(_) => Err(format!("the address has an unknown option, {EXPECTED}")),
            None => Ok(address),
        }
    }
}

impl AddressParts {
    /// Reads a text. Nothing is connected to and no file opened.
    ///
    /// # Errors
    /// Its fault and what was expected. Errors show nothing of the text, since any part may belong to a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let failed = |what: &str| format!("{what}, {EXPECTED}");
        let schemes = [("nats://", false), ("tls://", true)];
        let scheme = schemes.iter().find_map(|(scheme, tls)| Some((text.strip_prefix(scheme)?, *tls)));
        let (rest, requires_tls) = scheme.ok_or_else(|| failed("the address does not begin with nats:// or tls://"))?;
        let (credentials, rest) = rest.rsplit_once('@').map_or((None, rest), |(who, rest)| (Some(who), rest));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // NATS's own clients take a list of whole addresses.
        let rest = schemes.iter().fold(rest.to_owned(), |rest, (scheme, _)| rest.replace(&format!(",{scheme}"), ","));
        let (servers, path) = rest.split_once('/').unwrap_or((&rest, ""));
        let servers: Option<Vec<String>> = servers.split(',').map(server).collect();
        let servers = servers.ok_or_else(|| failed("a server is not host:port"))?;
        if servers.len() > SERVERS_MAX {
            return Err(failed(&format!("there are more than {SERVERS_MAX} servers")));
        }
        let identity =
            match credentials.map(|who| who.split_once(':').map_or((who, None), |(user, pw)| (user, Some(pw)))) {
                None => Identity::Nobody,
                Some((user, password)) => match (decoded(user), password.map(decoded)) {
                    (Some(name), Some(Some(password))) => Identity::User { name, password },
                    (Some(token), None) => Identity::Token(token),
                    _ => return Err(failed("user or password is not UTF-8")),
                },
            };
        let address = NatsAddress { servers, identity, requires_tls, authorities: None, client_certificate: None };
        let mut parts = Self { address, path: path.to_owned(), options: Vec::new() };
        let (mut certificate, mut key) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| failed("an option is not NAME=VALUE"))?;
            let value = decoded(value).ok_or_else(|| failed("an option is not UTF-8"))?;
            let file = PathBuf::from(&value);
            match name {
                "ca" => parts.address.authorities = Some(file),
                "cert" => certificate = Some(file),
                "key" => key = Some(file),
                "creds" | "nkey" if parts.address.identity != Identity::Nobody => {
                    return Err(failed("the address names two identities"));
                }
                "creds" => parts.address.identity = Identity::Credentials(file),
                "nkey" => parts.address.identity = Identity::Seed(file),
                _ => parts.options.push((name.to_owned(), value)),
            }
        }
        parts.address.client_certificate = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(failed("of `cert` and `key` there is only one")),
        };
        Ok(parts)
    }
}

/// Percent-decoded text; `None` if it is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned())
}

/// `host:port` with the port filled in.
fn server(text: &str) -> Option<String> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_known) {
        return None;
    }
    let port_at = text.rfind(':').filter(|at| text.rfind(']').is_none_or(|end| end < *at));
    match port_at {
        None => Some(format!("{text}:{PORT}")),
        Some(at) => text[at + 1..].parse::<u16>().ok().filter(|_| at > 0).map(|_| text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_path_and_user_are_found() {
        let parts = AddressParts::parse("nats://me:se%40cret@a,b:4223,[::1]:9/orders?replicas=3").expect("parsed");
        assert_eq!(parts.address.servers, ["a:4222", "b:4223", "[::1]:9"]);
        assert!(parts.address.identity == Identity::User { name: "me".to_owned(), password: "se@cret".to_owned() });
        assert_eq!((parts.path.as_str(), parts.address.to_string().as_str()), ("orders", "NATS a:4222,b:4223,[::1]:9"));
        assert_eq!(parts.options, [("replicas".to_owned(), "3".to_owned())]);
        let whole = AddressParts::parse("nats://me:se%40cret@a,nats://b:4223,nats://[::1]:9/orders").expect("parsed");
        assert!(whole.address == parts.address && whole.path == "orders");
        let plain = NatsAddress::parse("nats://localhost").expect("parsed");
        assert!(plain == NatsAddress::open_to_all("localhost:4222"));
    }

    #[test]
    fn tokens_keys_and_certificates_are_found() {
        let token = NatsAddress::parse("nats://s%2Fecret@a").expect("parsed");
        assert!(token.identity == Identity::Token("s/ecret".to_owned()));
        let secured = NatsAddress::parse("tls://a?ca=ca.pem&creds=/etc/me.creds&cert=c.pem&key=k.pem").expect("parsed");
        assert!(secured.requires_tls && secured.identity == Identity::Credentials("/etc/me.creds".into()));
        assert_eq!(secured.client_certificate, Some(("c.pem".into(), "k.pem".into())));
        assert!(NatsAddress::parse("nats://a?nkey=seed").expect("parsed").identity == Identity::Seed("seed".into()));
    }

    #[test]
    fn bad_texts_are_refused_without_showing_them() {
        for bad in [
            "http://me:secret@a",
            "nats://me:secret@",
            "nats://me:secret@a:port",
            "nats://me:secret@a/path",
            "nats://me:secret@a?secret=9",
            "nats://me:secret@a?secret",
            "nats://me:secret@a?creds=secret",
            "nats://me:%ffsecret@a",
            "nats://me:secret@a b",
            "tls://secret@a?cert=secret",
        ] {
            let error = NatsAddress::parse(bad).map(|_| ()).expect_err(bad);
            assert!(error.contains("expected") && !error.contains("secret"), "{error}");
        }
    }
}
