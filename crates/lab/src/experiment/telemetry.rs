//! `telemetry`: where services that Narrows has not started send theirs, and pages of metrics to read.
//!
//! Services that Narrows starts send to a receiver on loopback, whatever stands here.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use narrows_telemetry::otlp::{Exposed, Guard, Listen, NotAToken, Token};
use narrows_telemetry::scrape::{ENDPOINTS_MAX, Endpoint};
use serde_json::json;

use super::document::at::At;
use super::error::{Problem, Report};
use super::grammar::check::{Pass, check};
use super::grammar::complete::complete;
use super::grammar::key::{Key, Value, optional, parameter};
use super::grammar::kind::{AS_TEXT, Simple, no_hint};
use super::grammar::shape::{Field, Map, Shape};
use super::grammar::values::DURATION;
use super::placeholders::names::Values;

/// Sets the token without a file.
pub const OTLP_TOKEN_VARIABLE: &str = "NARROWS_OTLP_TOKEN";

static LISTEN_ADDRESS: Simple<SocketAddr> = Simple {
    expected: "an address and a port such as `0.0.0.0:4318`",
    name: "`ADDRESS:PORT`",
    written: AS_TEXT,
    read: |text| listen_address(text).ok_or(None),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^[0-9A-Fa-f.:\\[\\]]+$" }),
};

pub(crate) static TOKEN_TEXT: Simple<Token> = Simple {
    expected: "a token of letters, digits and `-._~+/`",
    name: "token",
    written: AS_TEXT,
    read: |text| Token::parse(text).map_err(|_| None),
    hint: no_hint,
    schema: || json!({ "type": "string", "maxLength": 256 }),
};

static PAGE_TEXT: Simple<Endpoint> = Simple {
    expected: "`URL` or `SERVICE=URL` of a page of metrics",
    name: "`[SERVICE=]URL`",
    written: AS_TEXT,
    read: |text| {
        Endpoint::parse(text).map_err(|error| Some(Problem::new(format!("cannot read metrics there: {error}"))))
    },
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^([^/:?=]+=)?http://" }),
};

const LISTEN: Key<SocketAddr> = Key::optional(
    "listen",
    parameter(&LISTEN_ADDRESS),
    "Where to receive OTLP, HTTP and gRPC, besides the address that started services are given. Beyond loopback it needs a \
     token.",
);

const TOKEN: Key<Token> = Key::beside(
    "token",
    parameter(&TOKEN_TEXT),
    &[LISTEN.name()],
    "The bearer token that senders there must present. Without it, the value of the environment variable \
     `NARROWS_OTLP_TOKEN`, which stands in no file.",
);

const SETTLE: Key<Duration> = Key::default(
    "settle",
    DURATION,
    "5500ms",
    "How long after the load to accept spans that senders still buffer, where `listen` is set.",
);

const PAGE: Value<Endpoint> = parameter(&PAGE_TEXT);

const METRICS: Field = optional(
    "metrics",
    Shape::List { item: &PAGE.shape(), least: 0, most: ENDPOINTS_MAX },
    "Pages of metrics to read each second under load, in Prometheus' text format or OpenMetrics. Series are kept under \
     `SERVICE`; those of cAdvisor and the kubelet under the name of their pod's workload.",
);

const SHAPE: Shape = Shape::Map(Map::new(&[LISTEN.field, TOKEN.field, SETTLE.field, METRICS]));

pub(crate) const TELEMETRY: Field =
    optional("telemetry", SHAPE, "How to get telemetry of services that somebody else has started.");

/// The section `telemetry`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Telemetry {
    listen: Option<SocketAddr>,
    token: Option<Token>,
    /// How long after the load spans are accepted; zero where only started services send any.
    pub settle: Duration,
    /// Pages of metrics.
    pub pages: Vec<Endpoint>,
}

/// Why telemetry cannot be received as an experiment says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryError {
    /// Other machines can reach the address, and there is no token.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// The environment variable holds no token.
    #[error("invalid {OTLP_TOKEN_VARIABLE}: {0}")]
    Token(#[from] NotAToken),
}

impl Telemetry {
    /// Where to listen, besides loopback; `None` if nowhere.
    ///
    /// # Errors
    /// When other machines can reach the address and neither the file nor the environment has a token.
    pub fn listen(&self) -> Result<Option<Listen>, TelemetryError> {
        let Some(address) = self.listen else { return Ok(None) };
        let guard = self.token()?.map_or(Guard::Nothing, Guard::Token);
        Ok(Some(Listen::new(address, guard)?))
    }

    fn token(&self) -> Result<Option<Token>, NotAToken> {
        self.token.clone().map_or_else(|| Token::of_variable(OTLP_TOKEN_VARIABLE), |token| Ok(Some(token)))
    }

    /// The token, to be found wherever it stands.
    pub(super) fn secret(&self) -> Option<String> {
        self.listen?;
        Some(self.token().ok()??.secret().to_owned())
    }
}

/// `ADDRESS:PORT`, or a port of loopback.
pub fn listen_address(text: &str) -> Option<SocketAddr> {
    let port = text.parse::<u16>().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    port.or_else(|| text.parse().ok())
}

/// The section as the experiment has it.
pub(super) fn build(root: At<'_>, values: &Values<'_>, report: &mut Report) -> Telemetry {
    let Some(at) = root.get(&TELEMETRY) else { return Telemetry::default() };
    let node = complete(at.node, &SHAPE, values);
    let at = at.with(&node);
    check(at, &SHAPE, Pass::Bound, report);
    let listen = at.read(&LISTEN);
    Telemetry {
        listen,
        token: at.read(&TOKEN),
        settle: listen.and_then(|_| at.read(&SETTLE)).unwrap_or_default(),
        pages: at.get(&METRICS).iter().flat_map(At::items).filter_map(|page| page.value(PAGE)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_beyond_loopback_needs_a_token() {
        let of = |listen: &str, token: Option<&str>| Telemetry {
            listen: listen_address(listen),
            token: token.map(|token| Token::parse(token).unwrap()),
            ..Telemetry::default()
        };
        assert_eq!(Telemetry::default().listen(), Ok(None));
        assert!(matches!(of("0.0.0.0:4318", None).listen(), Err(TelemetryError::Exposed(_))));
        for (listen, token) in [("4318", None), ("127.0.0.2:4318", None), ("0.0.0.0:4318", Some("secret"))] {
            let found = of(listen, token).listen().unwrap().unwrap();
            assert_eq!(found.token().map(Token::secret), token, "{listen}");
        }
        assert_eq!(of("0.0.0.0:4318", Some("secret")).secret().as_deref(), Some("secret"));
        assert!(listen_address("localhost").is_none() && listen_address("70000").is_none());
    }
}
