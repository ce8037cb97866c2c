//! Arguments that the services of several systems share.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use narrows_listener::{Exposed, Guard, Listen, NotAToken, Token};

/// The longest time that an argument may give.
const MILLISECONDS_MAX: f64 = 600_000.0;
/// Sets the token without showing it in the list of processes.
const TOKEN_VARIABLE: &str = "NARROWS_TOKEN";

/// `--listen` and `--insecure`, which every server has.
#[derive(Debug, clap::Args)]
pub struct Address {
    /// The address to listen on, such as 10.0.0.7, or 0.0.0.0 for all of this machine [default: 127.0.0.1]
    ///
    /// Other machines can reach any address that is not of loopback, so one needs protection besides, or --insecure.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub listen: Option<IpAddr>,
    /// Serve anyone who can reach the address
    #[arg(long)]
    pub insecure: bool,
}

/// `--token`, which requests have to present.
#[derive(Debug, clap::Args)]
pub struct TokenArgument {
    /// The bearer token that requests must present, and that calls to other services of the system present
    ///
    /// Probes of /health need none. Other users of this machine can read the token in the output of `ps`: the environment
    /// variable NARROWS_TOKEN sets it too.
    #[arg(long, value_name = "TOKEN", value_parser = token, conflicts_with = "insecure")]
    token: Option<Result<Token, NotAToken>>,
}

/// `--port`, `--listen`, `--token` and `--insecure`: where a service listens, and whom it serves.
#[derive(Debug, clap::Args)]
pub struct ListenArguments {
    /// The port; 0 is any free one [default: the variable PORT, or 0]
    #[arg(long)]
    port: Option<u16>,
    #[command(flatten)]
    address: Address,
    #[command(flatten)]
    token: TokenArgument,
}

/// Arguments by which a service cannot listen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// The environment variable `PORT` is not a port number.
    #[error("the variable PORT is {0:?}, expected a port from 0 to 65535")]
    Port(String),
    /// The token is not a token. It is not repeated.
    #[error("invalid {origin}: {reason}")]
    Token {
        /// The argument or the variable.
        origin: &'static str,
        /// Why.
        reason: NotAToken,
    },
    /// Other machines can reach the address, and nothing protects it.
    #[error(transparent)]
    Exposed(#[from] Exposed),
}

impl ListenError {
    /// Advice, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Exposed(_) => Some(
                "set a token with --token or the variable NARROWS_TOKEN, or listen on loopback behind a sidecar with mutual \
                 TLS; --insecure serves anyone",
            ),
            Self::Port(_) | Self::Token { .. } => None,
        }
    }
}

impl Address {
    /// The address and `port` with the protection `guard`; without any only if --insecure says so.
    ///
    /// # Errors
    ///
    /// [`Exposed`] if other machines can reach it and nothing protects it.
    pub fn listen(&self, port: u16, guard: Guard) -> Result<Listen, Exposed> {
        let guard = if guard == Guard::Nothing && self.insecure { Guard::Insecure } else { guard };
        Listen::new(SocketAddr::from((self.listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), port)), guard)
    }
}

impl TokenArgument {
    /// The token that was given, else that of the variable `NARROWS_TOKEN`; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`ListenError::Token`] if it is not a token.
    pub fn token(&self) -> Result<Option<Token>, ListenError> {
        let invalid = |origin| move |reason| ListenError::Token { origin, reason };
        match &self.token {
            Some(given) => given.clone().map(Some).map_err(invalid("--token")),
            None => Token::of_variable(TOKEN_VARIABLE).map_err(invalid(TOKEN_VARIABLE)),
        }
    }
}

impl ListenArguments {
    /// Where to listen: the port that was given, else that of the variable `PORT`, else any free one.
    ///
    /// # Errors
    ///
    /// [`ListenError`] if port or token cannot be read, or other machines can reach the address and nothing protects it.
    pub fn resolve(&self) -> Result<Listen, ListenError> {
        let port = number(self.port, std::env::var("PORT").ok())?;
        // `--insecure` asks for no token, even if the environment has one.
        let token = if self.address.insecure { None } else { self.token.token()? };
        Ok(self.address.listen(port, token.map_or(Guard::Nothing, Guard::Token))?)
    }
}

fn number(given: Option<u16>, variable: Option<String>) -> Result<u16, ListenError> {
    match (given, variable) {
        (Some(port), _) => Ok(port),
        (None, Some(text)) if !text.is_empty() => text.parse().map_err(|_| ListenError::Port(text)),
        (None, _) => Ok(0),
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "expected an IP address such as 10.0.0.7 or 0.0.0.0; --port sets the port".to_owned())
}

/// Never an error here: clap would print the value with it.
fn token(text: &str) -> Result<Result<Token, NotAToken>, Infallible> {
    Ok(Token::parse(text))
}

/// Reads a number of milliseconds from 0 to 600,000, which may have a fraction. It is a `value_parser` for clap.
///
/// # Errors
///
/// The range that was expected, if `text` is not such a number.
pub fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=MILLISECONDS_MAX).contains(number));
    number
        .map(|number| Duration::from_secs_f64(number / 1_000.0))
        .ok_or_else(|| format!("expected a number from 0 to {MILLISECONDS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_may_have_a_fraction_and_are_bounded() {
        assert_eq!(milliseconds("10.2"), Ok(Duration::from_micros(10_200)));
        assert_eq!(milliseconds("0"), Ok(Duration::ZERO));
        for wrong in ["", "x", "-1", "inf", "NaN", "600001", "1ms"] {
            assert!(milliseconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_given_port_comes_before_the_variable() {
        for (given, variable, expected) in [
            (Some(80), Some("x"), Ok(80)),
            (None, Some("8080"), Ok(8080)),
            (None, Some(""), Ok(0)),
            (None, None, Ok(0)),
            (None, Some("65536"), Err(ListenError::Port("65536".to_owned()))),
        ] {
            assert_eq!(number(given, variable.map(str::to_owned)), expected, "{given:?} {variable:?}");
        }
        let error = number(None, Some("x".to_owned())).unwrap_err();
        assert_eq!(error.to_string(), "the variable PORT is \"x\", expected a port from 0 to 65535");
    }

    fn arguments(listen: &str, token: Option<&str>, is_insecure: bool) -> ListenArguments {
        ListenArguments {
            port: Some(80),
            address: Address { listen: Some(address(listen).unwrap()), insecure: is_insecure },
            token: TokenArgument { token: token.map(Token::parse) },
        }
    }

    #[test]
    fn an_address_beyond_loopback_needs_a_token_or_the_word_insecure() {
        let refused = arguments("0.0.0.0", None, false).resolve().unwrap_err();
        assert!(refused.hint().unwrap().contains("--token"), "{refused}");
        assert!(arguments("127.0.0.2", None, false).resolve().is_ok());
        assert_eq!(arguments("0.0.0.0", None, true).resolve().unwrap().token(), None);
        let guarded = arguments("0.0.0.0", Some("secret"), false).resolve().unwrap();
        assert_eq!(
            (guarded.address().to_string().as_str(), guarded.token()),
            ("0.0.0.0:80", Token::parse("secret").ok().as_ref())
        );
        let wrong = arguments("0.0.0.0", Some("not a token"), false).resolve().unwrap_err().to_string();
        assert!(wrong.starts_with("invalid --token: expected") && !wrong.contains("not a token"), "{wrong}");
        assert!(address("0.0.0.0:80").is_err() && address("localhost").is_err());
    }
}
