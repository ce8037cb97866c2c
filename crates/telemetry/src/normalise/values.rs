//! Values of attributes as the types that facts have. A number may come as a string and the other way round; anything
//! else counts as absent.

use serde_json::Value;

pub(super) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) fn as_number(value: &Value) -> Option<u16> {
    let number = match value {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    u16::try_from(number).ok().filter(|number| *number > 0)
}

/// A whole number that may be 0.
pub(super) fn as_count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A number of request units: finite and not negative.
pub(super) fn as_charge(value: &Value) -> Option<f64> {
    let charge = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (charge.is_finite() && charge >= 0.0).then_some(charge)
}

/// The value of a header, which comes as a list since a header may be repeated. One that is repeated stays a list.
pub(super) fn one_of_header(value: &Value) -> &Value {
    match value.as_array().map(Vec::as_slice) {
        Some([only]) => only,
        _ => value,
    }
}

/// Host and port of an absolute URL, without user and password; the port of its scheme when it names none.
pub(super) fn authority(url: &str) -> Option<(&str, Option<u16>)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
        _ => (place, None),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let usual = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    (!host.is_empty()).then_some((host, port.or(usual)))
}

/// Parts `127.0.0.1:8000` and `[::1]:8000`, which Python's ASGI instrumentation sends as an address, at the port.
pub(super) fn split_port(address: String) -> (String, Option<u16>) {
    let Some((host, port)) = address.rsplit_once(':') else { return (address, None) };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_plain = !host.is_empty() && !host.contains(':');
    match (bracketed.or(is_plain.then_some(host)), port.parse()) {
        (Some(host), Ok(port)) if port > 0 => (host.to_owned(), Some(port)),
        _ => (address, None),
    }
}
