//! One request and its response, as a task of its own: on the slot's connection, or on a new one if there is none.
//!
//! A task is given all it needs and gives it back with its last report, so that it shares nothing but the queue
//! of reports. Time is not limited here: a task that takes too long is ended by the load thread.

use std::rc::Rc;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use narrows_model::load::{ErrorKind, Protocol};

use super::dial::{Dialer, Link};
use super::events::{Flight, Report};
use super::failure::{Progress, broken_by};
use super::translate;
use crate::drivers::transport::{Event, Failure, Order, Repeat, Response, Reuse};
use crate::recorder::Cause;
use crate::session::{Capture, Security, Sink};

/// Order to a task.
pub(super) struct Errand {
    pub(super) flight: Flight,
    pub(super) dialer: Rc<Dialer>,
    pub(super) link: Option<Link>,
    pub(super) order: Order,
    /// In HTTP/1.1, as it was rendered.
    pub(super) request: Bytes,
    /// Keeps what is wanted of the response, if anything is.
    pub(super) capture: Option<Capture>,
}

/// Outcome.
pub(super) struct ExchangeEnd {
    /// [`Event::Response`], or why there is none.
    pub(super) outcome: Result<Event, Failure>,
    /// The connection, if there is one that may carry another request.
    pub(super) link: Option<Link>,
    pub(super) capture: Option<Capture>,
}

impl Errand {
    /// Does it and reports what came of it.
    pub(super) async fn run(mut self) {
        let outcome = self.exchange().await;
        let (events, flight) = (self.dialer.events.clone(), self.flight);
        let ended = ExchangeEnd { outcome, link: self.link, capture: self.capture };
        events.push(flight, Report::Ended(Box::new(ended)));
    }

    async fn exchange(&mut self) -> Result<Event, Failure> {
        if let Some(mut link) = self.link.take()
            && link.is_ready().await
        {
            return self.send(link, 0).await;
        }
        let opened_ns = self.dialer.clock.now_ns();
        let link = self.dialer.dial(self.flight, self.order.target, self.order.from).await?;
        let dialled_ns = self.dialer.clock.now_ns() - opened_ns;
        self.send(link, dialled_ns).await.map_err(Failure::on_new_connection)
    }

    /// Sends the request on a connection, which is kept if the response is complete.
    async fn send(&mut self, mut link: Link, dialled_ns: i64) -> Result<Event, Failure> {
        let security = if self.dialer.encryption.is_some() { Security::Tls } else { Security::Plain };
        let request = translate::request(&self.request, self.dialer.protocol, security);
        let request = request.map_err(|cause| Failure::new(ErrorKind::Protocol, cause))?;
        link.meter.begin(self.flight, self.order.now_ns + dialled_ns);
        link.is_busy = true;
        let response = self.receive(&mut link, request).await?;
        link.is_busy = false;
        self.link = Some(link);
        Ok(response)
    }

    fn broken(&self, link: &Link, error: &hyper::Error, heard: Progress) -> Failure {
        let received = link.meter.read();
        if self.dialer.protocol == Protocol::Http2 && link.meter.hears_http1() {
            let cause = Cause::Text("it speaks HTTP/1, expected HTTP/2");
            return Failure { received, ..Failure::new(ErrorKind::Protocol, cause) };
        }
        let failure = Failure { received, ..broken_by(error, heard) };
        if link.meter.has_written() { failure } else { Failure { repeat: Repeat::Unsent, ..failure } }
    }

    async fn receive(&mut self, link: &mut Link, request: translate::Wanted) -> Result<Event, Failure> {
        let clock = self.dialer.clock;
        let response = link.send(request).await;
        let response = response.map_err(|error| {
            // Over HTTP/2 other frames come too, and a head comes as a whole.
            let is_part = self.dialer.protocol == Protocol::Http1 && link.meter.read() > 0;
            self.broken(link, &error, if is_part { Progress::Part } else { Progress::Nothing })
        })?;
        // The end of the head, as the library does not report its first byte.
        let first_byte_ns = clock.now_ns();
        let written = Event::Written { at_ns: link.meter.written_ns() };
        self.dialer.events.push(self.flight, Report::On(written));
        let status = response.status();
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let cause = Cause::Text("it switches protocols unexpectedly");
            return Err(Failure { received: link.meter.read(), ..Failure::new(ErrorKind::Protocol, cause) });
        }
        if let Some(capture) = &mut self.capture {
            capture.head(&translate::head(status, response.headers()));
        }
        let mut body = response.into_body();
        let mut body_bytes = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.broken(link, &error, Progress::Part))?;
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
        Ok(Event::Response { response, first_byte_ns, done_ns })
    }
}
