//! State of a user between the requests of an iteration, and what is done with responses beyond their status.
//!
//! Pure: bytes of requests and responses come in, verdicts and values come out; time comes in as an argument. Drivers
//! send and receive. Users of scenarios that need nothing of this have no [`Session`] at all.
//!
//! Not here: which requests are sent when, and anything that looks at more than one response.

mod capture;
mod checks;
mod cookie_date;
mod cookies;
mod extract;
mod redirect;
mod response;
mod rules;

use narrows_model::load::{Cookies, ErrorKind};

use crate::flows::Position;
use crate::recorder::Cause;
use crate::request::{headers_of, path_of};

pub(crate) use capture::{Capture, Sink};
use cookies::Jar;
pub(crate) use redirect::{Hop, HopMethod, Origin, Security};
pub(crate) use response::Decoder;
pub(crate) use rules::{Judgement, Rules, STATUS_FAILED, SentRequest};

/// The most variables of a scenario.
pub(crate) const VARIABLES_MAX: usize = 256;
/// The longest value of a variable, in bytes.
pub(crate) const VARIABLE_BYTES_MAX: usize = 64 * 1024;

const NS_PER_S: i64 = 1_000_000_000;

/// Why a response did not count as a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// `None` if the status is the whole cause.
    pub(crate) cause: Option<Cause>,
}

impl Failure {
    fn check(cause: Cause) -> Self {
        Self { kind: ErrorKind::Check, cause: Some(cause) }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    /// Where the iteration goes on after a pause; none between iterations and while a request is under way.
    upcoming: Option<Position>,
    /// By index; empty until extracted.
    variables: Vec<Vec<u8>>,
    cookies: Cookies,
    jar: Jar,
    /// The parts of the current response that are looked at.
    pub(crate) capture: Capture,
    /// Redirects followed so far within the current request.
    redirects: u8,
    hop_method: HopMethod,
    /// Bytes of the responses that redirected the current request.
    pub(crate) redirected_bytes: u64,
}

impl Session {
    pub(crate) fn new(variables: usize, cookies: Cookies) -> Self {
        Self {
            upcoming: None,
            variables: vec![Vec::new(); variables],
            cookies,
            jar: Jar::default(),
            capture: Capture::default(),
            redirects: 0,
            hop_method: HopMethod::AsItWas,
            redirected_bytes: 0,
        }
    }

    /// Sets the step at which the iteration goes on.
    pub(crate) fn go_on_at(&mut self, step: Position) {
        self.upcoming = Some(step);
    }

    /// The step at which the iteration goes on; `None` if the next request begins a new one.
    pub(crate) fn take_upcoming(&mut self) -> Option<Position> {
        self.upcoming.take()
    }

    /// Whether an iteration waits for its next step.
    pub(crate) fn is_within_iteration(&self) -> bool {
        self.upcoming.is_some()
    }

    /// Forgets what an iteration keeps to itself.
    pub(crate) fn begin_iteration(&mut self) {
        self.variables.iter_mut().for_each(Vec::clear);
        if self.cookies == Cookies::PerIteration {
            self.jar.clear();
        }
    }

    /// Makes ready for the next request, whatever became of the last, and returns how many bytes redirected it.
    pub(crate) fn end_request(&mut self) -> u64 {
        self.capture.clear();
        self.redirects = 0;
        self.hop_method = HopMethod::AsItWas;
        std::mem::take(&mut self.redirected_bytes)
    }

    /// Value of a variable; empty if it is not extracted.
    pub(crate) fn variable(&self, index: usize) -> &[u8] {
        self.variables.get(index).map_or(b"", Vec::as_slice)
    }

    /// Appends the cookies for the request whose first line and `Host` are in `out`, between `before` and `after`.
    /// Appends nothing if there are no cookies.
    pub(crate) fn append_cookies(&self, now_ns: i64, before: &[u8], after: &[u8], out: &mut Vec<u8>) {
        self.jar.append(now_ns.div_euclid(NS_PER_S), before, after, out);
    }

    /// Takes the cookies that the captured response sets.
    fn take_cookies(&mut self, request: &[u8], origin: &Origin<'_>, now_ns: i64) {
        if self.cookies == Cookies::Ignored {
            return;
        }
        let path = path_of(request);
        for (name, value) in headers_of(&self.capture.head) {
            if name.eq_ignore_ascii_case(b"set-cookie") {
                self.jar.set(value, path, origin, now_ns.div_euclid(NS_PER_S));
            }
        }
    }
}
