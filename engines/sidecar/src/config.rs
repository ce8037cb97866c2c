//! A sidecar's configuration: its hops, certificates and limits, read from a JSON file.
//!
//! A configuration that cannot work is refused before anything listens. Unknown keys are refused too, since a misspelt
//! `accept_tls` would leave a hop open.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_listener::{Guard, Listen};
use serde::Deserialize;

use crate::Error;
use crate::host_port::HostPort;

/// Most hops of one sidecar.
const HOPS_MAX: usize = 4_096;
/// Longest name of a hop in bytes.
const NAME_MAX: usize = 256;
/// Largest configuration file in bytes.
const FILE_MAX: u64 = 8 << 20;

/// A sidecar.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The name that its telemetry carries unless the environment has another.
    pub service: String,
    /// Certificates; `None` if no hop uses TLS.
    #[serde(default)]
    pub tls: Option<TlsFiles>,
    /// Where a JSON line is written for each request and each TCP connection; none is no log.
    #[serde(default)]
    pub access_log: Option<PathBuf>,
    /// At least one.
    pub hops: Vec<HopConfig>,
    /// Bounds on time and number.
    #[serde(default)]
    pub limits: Limits,
    /// Whether hops without TLS may listen where other machines reach them.
    #[serde(skip)]
    pub is_insecure: bool,
}

/// Where the process that reads a configuration may listen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exposure {
    /// Replaces the address, but not the port, of each inbound hop.
    pub listen: Option<IpAddr>,
    /// Whether hops without TLS may listen where other machines reach them.
    pub is_insecure: bool,
}

/// PEM files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The authority that callers' and upstreams' certificates must come from.
    pub ca: PathBuf,
    /// This sidecar's certificate, with any between it and the authority.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
}

/// A listener and where it leads.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopConfig {
    /// Its unique name in telemetry and errors.
    pub name: String,
    /// Towards the service or away from it.
    pub direction: Direction,
    /// An address of loopback; any other needs `accept_tls`, or a sidecar that may be insecure.
    pub listen: SocketAddr,
    /// Traffic of its connections.
    pub protocol: Protocol,
    /// Whether callers have to speak TLS and show a certificate.
    #[serde(default)]
    pub accept_tls: bool,
    /// Where it leads: `HOST:PORT`.
    pub upstream: HostPort,
    /// Whether the upstream speaks TLS and requests a certificate.
    #[serde(default)]
    pub upstream_tls: bool,
    /// The name that the upstream's certificate must have; needed with `upstream_tls`.
    #[serde(default)]
    pub upstream_name: Option<String>,
}

/// Whose requests a hop carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Others' to the service: spans of kind `SERVER`.
    Inbound,
    /// The service's to others: spans of kind `CLIENT`.
    Outbound,
}

/// Traffic of a hop's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1.
    Http,
    /// Anything.
    Tcp,
}

/// Bounds on time and number. Times are in milliseconds and at least 1, numbers are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Callers' connections of each hop that are open at a time; a further one replaces the one that has waited longest
    /// without a request in progress. Connections of a TCP hop never give way, so there it waits.
    pub connections_max: usize,
    /// From accepting a caller's connection to the complete head of its first request; HTTP hops only.
    pub first_request_timeout_ms: u64,
    /// Connections of each hop to its upstream; the next request waits.
    pub upstream_connections_max: usize,
    /// How long a request waits for one of them.
    pub pool_wait_ms: u64,
    /// How long connecting may take, and each TLS handshake.
    pub connect_timeout_ms: u64,
    /// How long an upstream may be silent: before the head of its response and between two pieces of the body.
    pub response_timeout_ms: u64,
    /// How long a connection is kept without work: less than the five seconds after which common servers close theirs.
    pub idle_timeout_ms: u64,
    /// How long requests under way may take to end once the sidecar is to stop.
    pub drain_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 8_192,
            first_request_timeout_ms: 30_000,
            upstream_connections_max: 1_024,
            pool_wait_ms: 5_000,
            connect_timeout_ms: 5_000,
            response_timeout_ms: 60_000,
            idle_timeout_ms: 4_000,
            drain_ms: 2_000,
        }
    }
}

impl Limits {
    pub(crate) fn pool_wait(&self) -> Duration {
        Duration::from_millis(self.pool_wait_ms)
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.connect_timeout_ms)
    }

    pub(crate) fn response_timeout(&self) -> Duration {
        Duration::from_millis(self.response_timeout_ms)
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.idle_timeout_ms)
    }

    pub(crate) fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }

    /// Limits of the listener of each hop.
    pub(crate) fn of_listener(&self) -> narrows_listener::Limits {
        narrows_listener::Limits {
            connections_max: self.connections_max,
            peer_connections_max: self.connections_max,
            first_request_timeout: Duration::from_millis(self.first_request_timeout_ms),
            // Callers' pools keep their connections for as long as they like.
            idle_timeout: None,
            drain: self.drain(),
        }
    }

    fn is_zero_somewhere(&self) -> Option<&'static str> {
        let times = [
            ("first_request_timeout_ms", self.first_request_timeout_ms),
            ("pool_wait_ms", self.pool_wait_ms),
            ("connect_timeout_ms", self.connect_timeout_ms),
            ("response_timeout_ms", self.response_timeout_ms),
            ("idle_timeout_ms", self.idle_timeout_ms),
            ("drain_ms", self.drain_ms),
            ("connections_max", self.connections_max as u64),
            ("upstream_connections_max", self.upstream_connections_max as u64),
        ];
        times.into_iter().find(|(_, value)| *value == 0).map(|(name, _)| name)
    }
}

impl Config {
    /// Reads a file and checks its content.
    ///
    /// # Errors
    ///
    /// [`Error::Read`], [`Error::Json`], [`Error::Config`] and [`Error::Exposed`].
    pub fn read(path: &Path, exposure: Exposure) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.to_owned(), source };
        let size = std::fs::metadata(path).map_err(unreadable)?.len();
        if size > FILE_MAX {
            let reason = format!("is {size} bytes long, expected at most {FILE_MAX}");
            return Err(Error::Config { what: path.display().to_string(), reason });
        }
        let text = narrows_files::read_text(path, FILE_MAX).map_err(unreadable)?;
        let mut config: Self =
            serde_json::from_str(&text).map_err(|source| Error::Json { path: path.to_owned(), source })?;
        config.is_insecure = exposure.is_insecure;
        if let Some(address) = exposure.listen {
            let inbound = config.hops.iter_mut().filter(|hop| hop.direction == Direction::Inbound);
            inbound.for_each(|hop| hop.listen.set_ip(address));
        }
        config.check()?;
        Ok(config)
    }

    /// Checks rules that the types cannot express.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |what: String, reason: &str| Err(Error::Config { what, reason: reason.to_owned() });
        if self.hops.is_empty() || self.hops.len() > HOPS_MAX {
            return wrong("hops".to_owned(), &format!("expected 1 to {HOPS_MAX}, found {}", self.hops.len()));
        }
        if let Some(name) = self.limits.is_zero_somewhere() {
            return wrong(format!("limits.{name}"), "expected at least 1, found 0");
        }
        let (mut names, mut listeners) = (BTreeSet::new(), BTreeSet::new());
        for hop in &self.hops {
            let what = format!("hop {:?}", hop.name);
            if let Some(reason) = hop.fault(self.tls.is_some()) {
                return wrong(what, &reason);
            }
            if let Err(exposed) = Listen::new(hop.listen, hop.guard(self.is_insecure)) {
                return Err(Error::Exposed { hop: hop.name.clone(), exposed });
            }
            if !names.insert(&hop.name) {
                return wrong(what, "another hop has the same name");
            }
            if hop.listen.port() != 0 && !listeners.insert(hop.listen) {
                return wrong(what, &format!("another hop listens on {} too", hop.listen));
            }
        }
        Ok(())
    }
}

impl HopConfig {
    /// Callers of a hop with TLS show a certificate.
    fn guard(&self, is_insecure: bool) -> Guard {
        match (self.accept_tls, is_insecure) {
            (true, _) => Guard::Own,
            (false, true) => Guard::Insecure,
            (false, false) => Guard::Nothing,
        }
    }

    fn fault(&self, has_certificates: bool) -> Option<String> {
        if self.name.is_empty() || self.name.len() > NAME_MAX {
            return Some(format!("expected a name of 1 to {NAME_MAX} bytes"));
        }
        if (self.accept_tls || self.upstream_tls) && !has_certificates {
            return Some("it uses TLS, but the configuration has no `tls`".to_owned());
        }
        (self.upstream_tls && self.upstream_name.is_none())
            .then(|| "`upstream_tls` needs `upstream_name`, the name in the upstream's certificate".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"service": "a.sidecar", "tls": null, "access_log": null, "hops": [
        {"name": "in", "direction": "inbound", "listen": "127.0.0.1:4001", "protocol": "http",
         "accept_tls": false, "upstream": "127.0.0.1:4002", "upstream_tls": false}]}"#;

    fn read(text: &str) -> Result<Config, String> {
        read_with(text, Exposure::default())
    }

    fn read_with(text: &str, exposure: Exposure) -> Result<Config, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Config::read(file.path(), exposure).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("{error}{cause}")
        })
    }

    #[test]
    fn a_file_is_read() {
        let config = read(GOOD).unwrap();
        assert_eq!((config.service.as_str(), config.hops.len()), ("a.sidecar", 1));
        assert_eq!((config.hops[0].protocol, config.hops[0].direction), (Protocol::Http, Direction::Inbound));
        assert_eq!(config.limits, Limits::default());
    }

    #[test]
    fn an_address_beyond_loopback_takes_tls_or_the_word_insecure() {
        let everywhere = Some("0.0.0.0".parse().unwrap());
        let open = read_with(GOOD, Exposure { listen: everywhere, is_insecure: false }).unwrap_err();
        assert!(open.contains("without protection"), "{open}");
        let config = read_with(GOOD, Exposure { listen: everywhere, is_insecure: true }).unwrap();
        assert_eq!(config.hops[0].listen.to_string(), "0.0.0.0:4001");
        let outbound = GOOD.replace("inbound", "outbound");
        let config = read_with(&outbound, Exposure { listen: everywhere, is_insecure: false }).unwrap();
        assert_eq!(config.hops[0].listen.to_string(), "127.0.0.1:4001", "what leads out stays on loopback");
        let secure = GOOD
            .replace("\"tls\": null", "\"tls\": {\"ca\": \"a\", \"certificate\": \"b\", \"key\": \"c\"}")
            .replace("\"accept_tls\": false", "\"accept_tls\": true");
        assert!(read_with(&secure, Exposure { listen: everywhere, is_insecure: false }).is_ok());
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let second = GOOD.replace("]}", ", {\"name\": \"b\", \"direction\": \"outbound\", \"listen\": \"127.0.0.1:4001\", \"protocol\": \"tcp\", \"upstream\": \"127.0.0.1:1\"}]}");
        let cases = [
            (
                GOOD.replace("127.0.0.1:4001", "0.0.0.0:4001"),
                "hop \"in\": cannot listen on 0.0.0.0:4001 without protection: other machines can reach it",
            ),
            (
                GOOD.replace("127.0.0.1:4002", "127.0.0.1:0"),
                "expected HOST:PORT such as 127.0.0.1:8080, found \"127.0.0.1:0\"",
            ),
            (
                GOOD.replace("\"accept_tls\": false", "\"accept_tls\": true"),
                "it uses TLS, but the configuration has no `tls`",
            ),
            (GOOD.replace("accept_tls", "acept_tls"), "unknown field `acept_tls`"),
            (GOOD.replace("\"name\": \"in\"", "\"name\": \"\""), "expected a name of 1 to 256 bytes"),
            (GOOD.replace("\"http\"", "\"udp\""), "unknown variant `udp`"),
            (GOOD.replace("\"tls\": null", "\"limits\": {\"drain_ms\": 0}"), "limits.drain_ms expected at least 1"),
            (second.clone(), "another hop listens on 127.0.0.1:4001 too"),
            (
                second.replace("\"b\"", "\"in\"").replace("4001\", \"protocol\": \"tcp", "4009\", \"protocol\": \"tcp"),
                "same name",
            ),
            (r#"{"service": "a", "hops": []}"#.to_owned(), "expected 1 to 4096, found 0"),
            ("{".to_owned(), "EOF while parsing"),
        ];
        for (text, expected) in cases {
            let said = read(&text).unwrap_err();
            assert!(said.contains(expected), "{said}\ndoes not say\n{expected}");
        }
    }
}
