//! Arguments that the services of several systems share.

use std::time::Duration;

/// The longest time that an argument may give.
const MILLISECONDS_MAX: f64 = 600_000.0;

/// `--port`, for a service that listens on loopback.
#[derive(Debug, clap::Args)]
pub struct Port {
    /// The port on 127.0.0.1; 0 is any free one [default: the variable PORT, or 0]
    #[arg(long)]
    port: Option<u16>,
}

/// The environment variable `PORT` is not a port number.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the variable PORT is {0:?}, expected a port from 0 to 65535")]
pub struct PortError(String);

impl Port {
    /// The port that was given, else that of the variable `PORT`, else 0, which is any free one.
    ///
    /// # Errors
    ///
    /// [`PortError`] if `PORT` is used and is not a number from 0 to 65535.
    pub fn number(&self) -> Result<u16, PortError> {
        number(self.port, std::env::var("PORT").ok())
    }
}

fn number(given: Option<u16>, variable: Option<String>) -> Result<u16, PortError> {
    match (given, variable) {
        (Some(port), _) => Ok(port),
        (None, Some(text)) if !text.is_empty() => text.parse().map_err(|_| PortError(text)),
        (None, _) => Ok(0),
    }
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
            (None, Some("65536"), Err(PortError("65536".to_owned()))),
        ] {
            assert_eq!(number(given, variable.map(str::to_owned)), expected, "{given:?} {variable:?}");
        }
        let error = number(None, Some("x".to_owned())).unwrap_err();
        assert_eq!(error.to_string(), "the variable PORT is \"x\", expected a port from 0 to 65535");
    }
}
