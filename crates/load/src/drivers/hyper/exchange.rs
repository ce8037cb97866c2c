//! One request and its response, as a task of its own: on the user's connection, or on a new one if there is none.
//!
//! A task is given all it needs and gives it back with its last event, so that it shares nothing but the queue
//! of events. Time is not limited here: a task that takes too long is ended by the load thread.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use narrows_model::load::{ErrorKind, Protocol};

use super::dial::{Dialer, Link};
use super::events::{Event, Flight};
use super::failure::{Broken, Heard, broken_by};
use super::translate;
use crate::drivers::worker::{Connection, Response, Reuse};
use crate::recorder::Cause;
use crate::session::{Capture, Security, Sink};

/// What a task is to do.
pub(super) struct Errand {
    pub(super) flight: Flight,
    pub(super) dialer: Rc<Dialer>,
    pub(super) connection: Option<Connection<Link>>,
    pub(super) target: SocketAddr,
    pub(super) from: Option<IpAddr>,
    /// In HTTP/1.1, as it was rendered.
    pub(super) request: Bytes,
    /// Keeps what is wanted of the response, if anything is.
    pub(super) capture: Option<Capture>,
}

/// What came of it.
pub(super) struct Ended {
    pub(super) result: Result<Whole, Broken>,
    /// The connection, if there is one that may carry another request.
    pub(super) connection: Option<Connection<Link>>,
    pub(super) capture: Option<Capture>,
}

/// A complete response. Times are Unix nanoseconds.
pub(super) struct Whole {
    pub(super) response: Response,
    pub(super) writing_ns: i64,
    pub(super) written_ns: i64,
    /// When the head of the response was there.
    pub(super) head_ns: i64,
    pub(super) done_ns: i64,
}

impl Errand {
    /// Does it and reports what came of it.
    pub(super) async fn run(mut self) {
        let result = self.exchange().await;
        let (events, flight) = (self.dialer.events.clone(), self.flight);
        let ended = Ended { result, connection: self.connection, capture: self.capture };
        events.push(flight, Event::Ended(Box::new(ended)));
    }

    async fn exchange(&mut self) -> Result<Whole, Broken> {
        if let Some(mut connection) = self.connection.take()
            && connection.socket.is_ready().await
        {
            let is_kept = connection.responses > 0;
            match self.send(connection, 0).await {
                Err(broken) if broken.has_no_response && is_kept => self.say(Event::Retried),
                result => return result,
            }
        }
        let opened_ns = self.dialer.clock.now_ns();
        let link = self.dialer.dial(self.flight, self.target, self.from).await?;
        let dialled_ns = self.dialer.clock.now_ns() - opened_ns;
        self.send(Connection::new(link), dialled_ns).await
    }

    fn say(&self, event: Event) {
        self.dialer.events.push(self.flight, event);
    }

    /// Sends the request on a connection, which is kept if the response is complete.
    async fn send(&mut self, mut connection: Connection<Link>, dialled_ns: i64) -> Result<Whole, Broken> {
        let link = &mut connection.socket;
        let security = if self.dialer.encryption.is_some() { Security::Tls } else { Security::Plain };
        let request = translate::request(&self.request, self.dialer.protocol, security);
        let request = request.map_err(|cause| Broken::new(ErrorKind::Protocol, cause))?;
        link.meter.begin(self.flight, dialled_ns);
        link.is_busy = true;
        let whole = self.receive(link, request).await?;
        link.is_busy = false;
        self.connection = Some(connection);
        Ok(whole)
    }

    fn broken(&self, link: &Link, error: &hyper::Error, heard: Heard) -> Broken {
        let bytes = link.meter.read();
        if self.dialer.protocol == Protocol::Http2 && link.meter.hears_http1() {
            let cause = Cause::Text("it speaks HTTP/1, expected HTTP/2");
            return Broken { bytes, ..Broken::new(ErrorKind::Protocol, cause) };
        }
        Broken { bytes, ..broken_by(error, heard) }
    }

    async fn receive(&mut self, link: &mut Link, request: translate::Wanted) -> Result<Whole, Broken> {
        let clock = self.dialer.clock;
        let response = link.send(request).await;
        let response = response.map_err(|error| {
            // Over HTTP/2 other frames come too, and a head comes as a whole.
            let is_part = self.dialer.protocol == Protocol::Http1 && link.meter.read() > 0;
            self.broken(link, &error, if is_part { Heard::Part } else { Heard::Nothing })
        })?;
        let head_ns = clock.now_ns();
        let (writing_ns, written_ns) = (link.meter.writing_ns(), link.meter.written_ns());
        let status = response.status();
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let cause = Cause::Text("it switches protocols unexpectedly");
            return Err(Broken { bytes: link.meter.read(), ..Broken::new(ErrorKind::Protocol, cause) });
        }
        if let Some(capture) = &mut self.capture {
            capture.head(&translate::head(status, response.headers()));
        }
        let mut body = response.into_body();
        let mut body_bytes = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.broken(link, &error, Heard::Part))?;
            if let Some(data) = frame.data_ref() {
                body_bytes += data.len() as u64;
                if let Some(capture) = &mut self.capture {
                    capture.body(data);
                }
            }
        }
        let done_ns = clock.now_ns();
        let reuse = if link.is_closed() { Reuse::Closed } else { Reuse::Open };
        let response = Response { status: status.as_u16(), reuse, bytes: link.meter.read(), body_bytes };
        Ok(Whole { response, writing_ns, written_ns, head_ns, done_ns })
    }
}
