//! The boundary between a load thread's users and the connections that carry their requests.
//!
//! A [`Transport`] owns connections, one per slot at most, and reports what happens on them as [`Event`]s. It never sees
//! a user: the worker alone decides what an event means for one. During a call a transport borrows the bytes of requests
//! and the places for responses through [`Exchanges`], so neither is copied to cross the boundary.

use std::net::{IpAddr, SocketAddr};

use narrows_model::load::ErrorKind;

use crate::recorder::Cause;
use crate::request::ResponseForm;
use crate::session::Capture;

/// The longest head of a response, and the longest trailer section, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Sends requests and receives responses. A slot has one connection and one request in progress at most.
///
/// Every event is about one slot. A request that was sent ends with exactly one [`Event::Response`] or [`Event::Failed`],
/// unless its slot is closed before; nothing follows for the slot until the next request, except [`Event::Closed`].
pub(crate) trait Transport {
    /// Sends the slot's request from its first byte: on the slot's connection, or on a new one if there is none. The slot
    /// must have no request in progress. What happens during the call is reported by [`Self::next`], like the rest.
    fn send(&mut self, slot: usize, order: Order, exchanges: &mut impl Exchanges);

    /// Closes the slot's connection, if there is one, and abandons its request in progress. No event follows.
    fn close(&mut self, slot: usize);

    /// Whether a connection has ever been opened for the slot.
    fn has_dialled(&self, slot: usize) -> bool;

    /// Waits until something happens or it is `wake_ns`, which is `wait_ns` from now; 0 or less does not wait. All events
    /// of the last wait must have been taken.
    fn wait(&mut self, wake_ns: i64, wait_ns: i64);

    /// The next event, in order; `None` if there is nothing left to do until the next wait.
    fn next(&mut self, exchanges: &mut impl Exchanges) -> Option<(usize, Event)>;

    /// Closes all connections in good order. Nothing is sent after it.
    fn farewell(&mut self);
}

/// View of users for a transport.
pub(crate) trait Exchanges {
    /// The bytes of a slot's current request, as HTTP/1.1.
    fn request(&self, slot: usize) -> &[u8];

    /// Keeps what is wanted of the response; `None` where only its size and status count.
    fn capture(&mut self, slot: usize) -> Option<&mut Capture>;
}

/// Where a request goes and what comes back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    pub(super) target: SocketAddr,
    /// The address to connect from; `None` if the kernel chooses.
    pub(super) from: Option<IpAddr>,
    /// Shape of the response.
    pub(super) form: ResponseForm,
    /// The present time in Unix nanoseconds.
    pub(super) now_ns: i64,
}

/// Event. Times are Unix nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// A new connection is usable.
    Connected {
        /// Just before `connect`.
        opened_ns: i64,
        connected_ns: i64,
        /// When encryption was established, if there is any.
        secured_ns: Option<i64>,
    },
    /// The connection took the first bytes of the request.
    Sent {
        at_ns: i64,
        /// How long the transport itself held the request back. Opening a connection does not count.
        delay_ns: i64,
    },
    /// The connection took the last bytes of the request. Missing when the response came first.
    Written { at_ns: i64 },
    /// So many bytes of the response have arrived, and it is not complete.
    Received { bytes: u64 },
    /// The response is complete. Unless the connection can carry another request, the slot must be closed before the next.
    Response { response: Response, first_byte_ns: i64, done_ns: i64 },
    /// No complete response will come. The slot must be closed before its next request.
    Failed(Failure),
    /// The slot's connection was closed between requests.
    Closed,
}

/// Why a request has no complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(super) kind: ErrorKind,
    pub(super) cause: Cause,
    /// Bytes of the response that arrived.
    pub(super) received: u64,
    /// Whether the request may be sent once more. [`Repeat::Never`] on a new connection.
    pub(super) repeat: Repeat,
}

/// Whether a request without a response may be sent once more, on a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It may not.
    Never,
    /// A kept connection broke before any byte of the response. The server may have closed it as idle, or may have
    /// processed the request: only an idempotent one may be sent again (RFC 9110, 9.2.2).
    IfIdempotent,
    /// The server reports that it has not processed the request (RFC 9113, 8.7).
    Unprocessed,
    /// No byte of it was sent: the connection turned out to be closed.
    Unsent,
}

impl Failure {
    /// A failure before any byte of a response, which sending once more would not help.
    pub(super) fn new(kind: ErrorKind, cause: Cause) -> Self {
        Self { kind, cause, received: 0, repeat: Repeat::Never }
    }

    /// The same on a new connection, which cannot have been closed as idle.
    pub(super) fn on_new_connection(self) -> Self {
        Self { repeat: Repeat::Never, ..self }
    }
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Response {
    pub(super) status: u16,
    /// Whether the connection can carry another request.
    pub(super) reuse: Reuse,
    /// All bytes: heads, body, framing.
    pub(super) bytes: u64,
    /// The body's bytes without framing.
    pub(super) body_bytes: u64,
}

/// Whether a connection can carry another request after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// Another request may follow.
    Open,
    /// The server closes it or has sent bytes that belong to no request, or the request was not written whole.
    Closed,
}
