//! Sessions: a cookie that names the session and the instance that responded to it last.
//!
//! The service keeps nothing for a session. What it can see is whether a client comes back to the same instance, and
//! so to the same node of the database: the response's header `micron-session` says `new`, `kept` or `moved`, and the
//! request's span and a metric say it too. Who keeps a client where it is, is the proxy in front. Where that is relied
//! upon, an instance refuses a session of another one with 421 and leaves its cookie alone, so every request that went
//! astray is an error that somebody sees.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::str::FromStr;

use axum::extract::{Request, State};
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::KeyValue;
use opentelemetry::trace::TraceContextExt as _;
use serde_json::json;

use crate::Error;
use crate::meters::Meters;
use narrows_serving::problem::Problem;
use narrows_serving::server_span::Trace;

const COOKIE_NAME: &str = "micron_session";
const STATE: HeaderName = HeaderName::from_static("micron-session");
const INSTANCE: HeaderName = HeaderName::from_static("micron-instance");
/// How long a client keeps its session, seconds.
const LIFETIME_S: u32 = 3_600;

/// Treatment of a session that comes from another instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovedSession {
    /// It stays here from now on.
    Served,
    /// It is refused with 421, as it should have been sent to its own instance.
    Refused,
}

impl FromStr for MovedSession {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "served" => Ok(Self::Served),
            "refused" => Ok(Self::Refused),
            _ => Err(Error::Setting { name: "moved-sessions", value: text.to_owned(), expected: "served or refused" }),
        }
    }
}

/// Settings of the middleware.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    pub(crate) instance: usize,
    pub(crate) moved: MovedSession,
    pub(crate) meters: Meters,
}

/// A session as a cookie has it: `ID.INSTANCE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Session {
    id: u64,
    instance: usize,
}

impl Session {
    fn parse(text: &str) -> Option<Self> {
        let (id, instance) = text.split_once('.')?;
        let is_hex = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = (1..=4).contains(&instance.len()) && instance.bytes().all(|byte| byte.is_ascii_digit());
        let (true, true) = (is_hex, is_number) else { return None };
        Some(Self { id: u64::from_str_radix(id, 16).ok()?, instance: instance.parse().ok()? })
    }

    /// The first one among the request's cookies.
    fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find_map(|(name, value)| (name == COOKIE_NAME).then(|| Self::parse(value))?)
    }

    fn cookie(self) -> Option<HeaderValue> {
        let Self { id, instance } = self;
        let text = format!("{COOKIE_NAME}={id:016x}.{instance}; Path=/; HttpOnly; SameSite=Lax; Max-Age={LIFETIME_S}");
        HeaderValue::try_from(text).ok()
    }
}

/// A middleware within that of the span.
pub(crate) async fn keep(State(sessions): State<Sessions>, request: Request, next: Next) -> Response {
    let instance = sessions.instance;
    let known = Session::from_headers(request.headers());
    let (session, state) = match known {
        Some(session) if session.instance == instance => (session, "kept"),
        Some(session) => (Session { instance, ..session }, "moved"),
        None => (Session { id: random(), instance }, "new"),
    };
    sessions.meters.session(state);
    if let Some(Trace(cx)) = request.extensions().get::<Trace>() {
        cx.span().set_attribute(KeyValue::new("session.id", format!("{:016x}", session.id)));
        cx.span().set_attribute(KeyValue::new("micron.session.state", state));
    }
    let is_refused = state == "moved" && sessions.moved == MovedSession::Refused;
    let mut response = if is_refused { misdirected(instance) } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(STATE, HeaderValue::from_static(state));
    headers.insert(INSTANCE, HeaderValue::from(instance));
    if known != Some(session) && !is_refused {
        session.cookie().map(|cookie| headers.append(SET_COOKIE, cookie));
    }
    response
}

fn misdirected(instance: usize) -> Response {
    let detail = format!("the session belongs to another instance than {instance}");
    Problem::new(StatusCode::MISDIRECTED_REQUEST, &detail).with("reason", json!("moved")).into_response()
}

/// A number that nobody can foretell and nobody has to: the standard library seeds its hash tables with it.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_comes_back_as_it_was_set() {
        let session = Session { id: 7, instance: 3 };
        let set = session.cookie().unwrap();
        let set = set.to_str().unwrap();
        assert_eq!(set, "micron_session=0000000000000007.3; Path=/; HttpOnly; SameSite=Lax; Max-Age=3600");
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=b; c"));
        headers.append(COOKIE, HeaderValue::try_from(format!("x=1;{}", set.split(';').next().unwrap())).unwrap());
        assert_eq!(Session::from_headers(&headers), Some(session));
    }

    #[test]
    fn what_is_no_session_counts_as_none() {
        for text in
            ["", ".", "7.3", "0000000000000007", "0000000000000007.", "000000000000000g.1", "0000000000000007.-1"]
        {
            assert_eq!(Session::parse(text), None, "{text}");
        }
        assert_eq!(Session::parse("0000000000000007.99999"), None);
        assert_eq!(Session::parse("00000000000000é.1"), None);
    }
}
