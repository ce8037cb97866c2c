//! Calls to another service: which replica, over which connection, how often, and what becomes of a failure.
//!
//! A call is a `GET` without a body, which may be made again: an attempt that ends without a response because the
//! connection failed is made again, at the next replica, and a kept connection that had been closed is replaced by a
//! fresh one first. A call that takes too long is not made again: that would only add load to a slow service.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::Empty;
use narrows_listener::Token;
use serde::Deserialize;
use tokio::time::Instant;

use crate::base_url::{Authority, BaseUrls};
use crate::response::{Problem, Reason};
use crate::trace::Trace;

mod connection;
mod failure;
mod span;
#[cfg(test)]
mod tests;

use connection::{CallOutcome, Connection};
use failure::CallFailure;
use span::AttemptSpan;

/// Connections to a replica that are kept while nobody uses them.
const IDLE_MAX: usize = 256;
/// How often a call is made at most, whatever the number of replicas.
const ATTEMPTS_MAX: usize = 3;

/// Which replica of a service is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// One after the other.
    RoundRobin,
    /// Always the one with this number, modulo how many there are; another only when it cannot be reached.
    Affinity(usize),
}

/// Where another service is and how it is called.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its replicas.
    pub replicas: BaseUrls,
    /// Which of them is called.
    pub choice: Choice,
    /// How long one call may take, connecting included.
    pub timeout: Duration,
}

/// Another service.
pub(crate) struct Upstream {
    name: &'static str,
    path: &'static str,
    replicas: Vec<Replica>,
    choice: Choice,
    turn: AtomicUsize,
    timeout: Duration,
}

struct Replica {
    authority: Authority,
    host: HeaderValue,
    /// Header that presents the token.
    authorization: Option<HeaderValue>,
    /// The connection that was used last is used next, so that few stay in use.
    idle: Mutex<Vec<Connection>>,
}

/// The fields used of a downstream's problem.
#[derive(Deserialize)]
struct ProblemBody {
    reason: String,
    detail: String,
}

impl Upstream {
    /// The service `name`, called at `path` with `token`.
    pub(crate) fn new(name: &'static str, path: &'static str, config: Config, token: Option<&Token>) -> Self {
        let replicas = config.replicas.0.into_iter().map(|authority| Replica::new(authority, token)).collect();
        let Config { choice, timeout, .. } = config;
        Self { name, path, replicas, choice, turn: AtomicUsize::new(0), timeout }
    }

    /// The body of a 200.
    ///
    /// # Errors
    ///
    /// The problem for the caller, if the call failed.
    pub(crate) async fn get(&self, trace: &Trace) -> Result<Bytes, Problem> {
        let response = self.attempts(trace, Instant::now() + self.timeout).await;
        let response = response.map_err(|failure| failure.into_problem(self.name))?;
        if response.status() == StatusCode::OK { Ok(response.into_body()) } else { Err(self.refused(&response)) }
    }

    /// The problem for the caller about an unreadable body.
    pub(crate) fn unreadable(&self, error: &serde_json::Error) -> Problem {
        Problem::new(StatusCode::BAD_GATEWAY, Reason("unreadable_response"), format!("{}: {error}", self.name))
    }

    async fn attempts(&self, trace: &Trace, deadline: Instant) -> Result<Response<Bytes>, CallFailure> {
        let first = self.first();
        let mut resend = 0;
        loop {
            let replica = &self.replicas[(first + resend as usize) % self.replicas.len()];
            let result = replica.attempt(trace, Attempt { path: self.path, resend }, deadline).await;
            resend += 1;
            let is_last = resend as usize >= ATTEMPTS_MAX;
            match result {
                Err(failure) if failure.is_worth_another_attempt() && !is_last => {}
                result => return result,
            }
        }
    }

    fn first(&self) -> usize {
        match self.choice {
            Choice::RoundRobin => self.turn.fetch_add(1, Ordering::Relaxed),
            Choice::Affinity(replica) => replica,
        }
    }

    /// A response other than 200: one that reports itself as busy or late is passed on, so that the client
    /// learns where in the chain that was.
    fn refused(&self, response: &Response<Bytes>) -> Problem {
        let status = response.status();
        let passed_on = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT, StatusCode::BAD_GATEWAY];
        if let (true, Ok(problem)) =
            (passed_on.contains(&status), serde_json::from_slice::<ProblemBody>(response.body()))
        {
            return Problem { status, reason: problem.reason, detail: format!("{}: {}", self.name, problem.detail) };
        }
        let status_kept = passed_on[..2].contains(&status).then_some(status);
        let detail = format!("{} responded with {}", self.name, status.as_u16());
        Problem::new(status_kept.unwrap_or(StatusCode::BAD_GATEWAY), Reason("refused"), detail)
    }
}

/// One of the attempts of a call.
#[derive(Clone, Copy)]
struct Attempt {
    path: &'static str,
    /// Number of attempts before it.
    resend: u32,
}

impl Replica {
    fn new(authority: Authority, token: Option<&Token>) -> Self {
        let Authority { host, port } = &authority;
        let host = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        // A host was part of a URL, so it can be a header; if not, the replica responds without one or refuses.
        let host = HeaderValue::try_from(host).unwrap_or(HeaderValue::from_static(""));
        Self { authority, host, authorization: token.map(Token::header), idle: Mutex::default() }
    }

    /// One attempt, which counts as one also when the kept connection turns out to be closed.
    async fn attempt(
        &self,
        trace: &Trace,
        Attempt { path, resend }: Attempt,
        deadline: Instant,
    ) -> Result<Response<Bytes>, CallFailure> {
        let span = AttemptSpan::begin(trace, &self.authority, path, resend);
        let request = || {
            let mut request = Request::new(Empty::new());
            *request.uri_mut() = Uri::from_static(path);
            request.headers_mut().insert(HOST, self.host.clone());
            request.headers_mut().extend(self.authorization.iter().map(|value| (AUTHORIZATION, value.clone())));
            span.hand_on(trace, request.headers_mut());
            request
        };
        let result = tokio::time::timeout_at(deadline, self.exchange(request)).await;
        let result = result.unwrap_or(Err(CallFailure::Timeout));
        span.finish(&result);
        result
    }

    async fn exchange(&self, request: impl Fn() -> Request<Empty<Bytes>>) -> Result<Response<Bytes>, CallFailure> {
        if let Some(connection) = self.take() {
            let CallOutcome { result, kept } = connection.exchange(request()).await;
            self.keep(kept);
            if !matches!(result, Err(CallFailure::Connection(_))) {
                return result;
            }
            // It was closed meanwhile, and so the others probably were.
            self.idle().clear();
        }
        let CallOutcome { result, kept } = Connection::open(&self.authority).await?.exchange(request()).await;
        self.keep(kept);
        result
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Connection> {
        self.idle().pop()
    }

    fn keep(&self, connection: Option<Connection>) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.extend(connection);
        }
    }
}
